"""`handfast check [PATHS]`: find lifetime bugs without running the code.

The output and the exit status; `handfast.check` does the work, and `check_options` has the options.
Only the standard library is imported: the command works without the extra `[cli]`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handfast import __version__
from handfast._check.engine.cache import FOLDER
from handfast._check.engine.discovery import STDIN, NoSuchPath, find
from handfast._check.engine.engine import check as check_paths
from handfast._check.engine.engine import default_jobs
from handfast._check.output import printable, render
from handfast._check.report import Report
from handfast._check.settings.settings import SettingsFinder
from handfast._check.settings.settings_file import BadSettings
from handfast.cli.check_options import option_names as completions
from handfast.cli.check_options import parse
from handfast.cli.progress import LateBar
from handfast.cli.usage import note, out, usage_error

if TYPE_CHECKING:
    from argparse import Namespace

    from handfast._check.fixes.apply_fixes import FixedFile

__all__ = ["completions", "main"]

# Seconds after which a progress bar is shown.
_PATIENCE = 2.0
# A fix may make another one possible; one that never ends must stop somewhere.
_PASSES = 10
# Seconds between two looks at the files, with `--watch`.
_PAUSE = 0.5
_TEXTS = ("text", "concise", "grouped")


def main(arguments: Sequence[str]) -> int:
    """Find lifetime bugs in source code: leaked tasks, races at shutdown, swallowed cancellations."""
    options = parse(arguments)
    options.paths = options.paths or ["."]
    options.fix = options.fix or options.unsafe_fixes or options.fix_only
    _refuse(options)
    try:
        os.getcwd()
        if options.watch:
            _watch(lambda: _once(options, None), options)
        stdin = _standard_input() if STDIN in options.paths else None
        return _once(options, stdin)[0]
    except (NoSuchPath, BadSettings) as error:
        usage_error(printable(str(error)))
    except OSError as error:
        usage_error(f"the current folder cannot be used: {error.strerror}")
    except KeyboardInterrupt:
        note("interrupted")
        return 130
    except Exception:
        # Not status 1, with which an uncaught exception ends: it means "found something".
        import traceback

        note(f"handfast: internal error, please report it\n{traceback.format_exc()}")
        return 2


def _refuse(options: Namespace) -> None:
    """Exit with a message if options do not fit together."""
    if options.explain is not None:
        usage_error(f"there is no --explain: use `handfast explain {options.explain}`")
    if options.statistics and options.form not in ("text", "json"):
        usage_error(f"--statistics needs --output-format text or json, not {options.form}")
    if STDIN in options.paths and (options.fix or options.add_noqa or options.diff):
        usage_error("standard input cannot be fixed: give the name of the file")
    if STDIN in options.paths and options.watch:
        usage_error("standard input cannot be watched: give the name of the file")
    if options.stdin_filename is not None and STDIN not in options.paths:
        usage_error("--stdin-filename needs - among the paths")
    if options.baseline is not None and options.write_baseline is not None:
        usage_error("use either --baseline or --write-baseline")


def _standard_input() -> bytes:
    if sys.stdin is None:
        usage_error("standard input is closed")
    return sys.stdin.buffer.read()


def _once(options: Namespace, stdin: bytes | None) -> tuple[int, Report]:
    """Check, and do what the options want with the report. Return the exit status, too."""
    settings = _settings(options)
    if options.show_files or options.show_settings:
        show = _show_files if options.show_files else _show_settings
        show(options.paths, SettingsFinder(**settings))
        return 0, Report()

    is_text = options.form in _TEXTS

    def run() -> Report:
        with _Bar() as bar:
            return check_paths(
                options.paths,
                **settings,
                jobs=options.jobs or default_jobs(),
                cache=None if options.no_cache else _cache_folder(),
                stdin=stdin,
                stdin_filename=options.stdin_filename,
                count_hidden=is_text and not options.quiet and not options.pedantic,
                edits=not is_text or options.diff or options.fix,
                progress=bar,
            )

    def say(message: str) -> None:
        if not options.quiet:
            note(message)

    report = run()
    written = True
    if options.diff:
        return _show_diff(report, options.unsafe_fixes, say), report
    if options.fix:
        report, written = _fix(run, report, options.unsafe_fixes, say)
    if options.add_noqa:
        return _add_noqa(report, say), report
    if options.fix_only:
        return (0 if written else 2), report
    if options.write_baseline is not None:
        _write_baseline(options.write_baseline, report, say)
        return 0, report
    if options.baseline is not None:
        report = _without_known(options.baseline, report, say)
    _show(report, options)
    return (2 if not written else 0 if report.clean or options.exit_zero else 1), report


def _settings(options: Namespace) -> dict[str, Any]:
    """The arguments that `check` and `SettingsFinder` have in common."""
    ignores: dict[str, list[str]] = {}
    for pattern, code in options.per_file_ignores or ():
        ignores.setdefault(pattern, []).append(code)
    return {
        "select": options.select,
        "extend_select": options.extend_select,
        "ignore": options.ignore,
        "per_file_ignores": ignores or None,
        "pedantic": options.pedantic or None,
        "exclude": options.exclude,
        "config": options.config,
    }


def _cache_folder() -> str:
    """In the folder of the project or repository, otherwise in the current folder."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "pyproject.toml").exists() or (folder / ".git").exists():
            return str(folder / FOLDER)
    return str(here / FOLDER)


def _show_files(paths: Iterable[str], finder: SettingsFinder) -> None:
    out("".join(f"{printable(path)}\n" for path in find(paths, finder.excluded).files))


def _show_settings(paths: Iterable[str], finder: SettingsFinder) -> None:
    files: dict[Any, list[str]] = {}
    for path in find(paths, finder.excluded).files:
        files.setdefault(finder.of(path), []).append(path)
    for settings, there in files.items():
        selection = settings.selection
        rows = {
            "select": selection.select,
            "ignore": selection.ignore,
            "pedantic": selection.pedantic,
            "per-file-ignores": dict(settings.per_file_ignores),
            "relaxed": settings.relaxed,
            "exclude": settings.exclude,
            "thread-callbacks": selection.thread_callbacks,
        }
        origin = printable(settings.path) or "the defaults"
        out(f"# {printable(there[0])} and {len(there) - 1:,} other files: {origin}\n")
        out("".join(f"{key} = {_as_toml(value)}\n" for key, value in rows.items()) + "\n")


def _as_toml(value: Any) -> str:
    import json

    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {_as_toml(each)}' for key, each in value.items())}}}"
    return json.dumps(value)


# --- fixes, comments and baselines ---------------------------------------------------------------

Say = Callable[[str], None]


def _show_diff(report: Report, unsafe: bool, say: Say) -> int:
    from handfast._check.fixes.apply_fixes import apply_fixes, diff

    files = apply_fixes(report.findings, report.texts, unsafe=unsafe)
    unread = False
    for each in files:
        try:
            patch = diff(each)
        except OSError as error:
            unread = True
            note(f"{printable(each.path)} cannot be shown: {error.strerror}")
        else:
            # A patch has the bytes of the file; on a terminal they could be its commands.
            is_terminal = sys.stdout is not None and sys.stdout.isatty()
            out(_harmless(patch.decode("utf-8", "replace")) if is_terminal else patch)
    count = sum(len(each.fixed) for each in files)
    where = f"{len(files)} file{'' if len(files) == 1 else 's'}"
    say(f"Would fix {count} in {where}." if count else "Nothing to fix.")
    return 2 if unread else 1 if count else 0


def _harmless(text: str) -> str:
    return "\n".join(map(printable, text.replace("\t", "    ").split("\n")))


def _fix(run: Callable[[], Report], report: Report, unsafe: bool, say: Say) -> tuple[Report, bool]:
    """Return the report of the fixed files, and whether all of them could be written."""
    from handfast._check.fixes.apply_fixes import apply_fixes

    count = 0
    unwritten: set[str] = set()
    for _ in range(_PASSES):
        files = apply_fixes(report.findings, report.texts, unsafe=unsafe)
        files = [each for each in files if each.path not in unwritten]
        if not files:
            break
        done = _write(files, unwritten)
        count += done
        report = run()
    if count:
        say(f"Fixed {count}.")
    return report, not unwritten


def _write(files: Iterable[FixedFile], unwritten: set[str]) -> int:
    """Write files; add those that cannot be written to a set, and return how much was fixed."""
    from handfast._check.fixes.apply_fixes import write

    count = 0
    for each in files:
        try:
            write(each)
        except OSError as error:
            unwritten.add(each.path)
            note(f"{printable(each.path)} cannot be written: {error.strerror}")
        else:
            count += len(each.fixed)
    return count


def _add_noqa(report: Report, say: Say) -> int:
    from handfast._check.add_noqa import add_noqa

    files, left = add_noqa(report.findings, report.texts)
    unwritten: set[str] = set()
    count = _write(files, unwritten)
    say(f"Added noqa comments for {count} finding{'' if count == 1 else 's'}.")
    for each in left:
        place = f"{printable(each.place.path)}:{each.place.line}"
        note(f"{place}: {each.code} has no line that a comment could be added to")
    return 2 if unwritten or left else 0


def _write_baseline(file: str, report: Report, say: Say) -> None:
    from handfast._check import baseline
    from handfast._check.output.text import Lines

    try:
        baseline.write(Path(file), report.findings, Lines(report.texts))
    except OSError as error:
        usage_error(f"the baseline {file} cannot be written: {error.strerror}")
    say(f"Wrote {len(report.findings)} findings to {file}.")


def _without_known(file: str, report: Report, say: Say) -> Report:
    from handfast._baseline import BadBaseline
    from handfast._check import baseline
    from handfast._check.output.text import Lines

    try:
        known = baseline.load(Path(file), Lines(report.texts))
    except BadBaseline as error:
        usage_error(str(error))
    left = replace(report, findings=tuple(known.new(report.findings)))
    gone = baseline.FILE.gone_text(baseline.gone(known, report.paths))
    if gone:
        say(gone)
    return left


# --- output --------------------------------------------------------------------------------------


def _show(report: Report, options: Namespace) -> None:
    if options.statistics:
        from handfast._check.statistics import statistics as table
        from handfast._check.statistics import statistics_json

        out(statistics_json(report) if options.form == "json" else table(report))
    else:
        colour = _is_colourful(options.color)
        out(render(report, options.form, version=__version__, colour=colour, quiet=options.quiet))
    for path in report.not_checked:
        note(f"handfast: {printable(path)} is a notebook, and not checked")


def _is_colourful(when: str = "auto") -> bool:
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return is_terminal and os.environ.get("TERM") != "dumb"


class _Bar(LateBar):
    """How many files have been checked."""

    def __init__(self) -> None:
        super().__init__(None, _PATIENCE, "{task.completed:,} of {task.total:,} files", "bar")
        self._began = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        try:
            self.show(time.monotonic() - self._began, completed=done, total=total)
        except ModuleNotFoundError:
            pass  # rich is not installed


# --- watching ------------------------------------------------------------------------------------


def _watch(once: Callable[[], tuple[int, Report]], options: Namespace) -> None:
    """Check again whenever a file changes, until Ctrl-C."""
    paths: Sequence[str] = options.paths
    while True:
        if sys.stdout is not None and sys.stdout.isatty():
            out("\x1b[2J\x1b[H")
        before = _states(paths)
        try:
            paths = once()[1].paths or paths
        except (NoSuchPath, BadSettings) as error:
            note(f"handfast: {printable(str(error))}")
        note("Watching for changes; Ctrl-C ends it.")
        before = _states(paths) | before  # a change during the check counts, too
        while all(before[name] == state for name, state in _states(paths).items()):
            _pause()


def _pause() -> None:
    time.sleep(_PAUSE)


def _states(paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The times of the files, of their folders, where new files appear, and of their settings."""
    names = {os.path.abspath(path) for path in paths}
    folders = {os.path.dirname(name) for name in names}
    found: dict[str, tuple[int, int]] = {}
    for name in (*names, *folders, *(os.path.join(each, "pyproject.toml") for each in folders)):
        try:
            state = os.stat(name)
            found[name] = (state.st_mtime_ns, state.st_size)
        except OSError:
            found[name] = (0, 0)
    return found
