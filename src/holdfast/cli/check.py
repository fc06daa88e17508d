"""`holdfast check [PATHS]`: find lifetime bugs by reading the code. What is asked for, and what is
printed; the reading itself is `holdfast.check`'s work.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from holdfast.check.cache import FOLDER
from holdfast.check.engine import check as check_paths
from holdfast.check.engine import default_jobs
from holdfast.check.files import STDIN, NoSuchPath
from holdfast.check.output import FORMATS
from holdfast.check.settings import BadSettings

if TYPE_CHECKING:
    from holdfast.check.output.lines import Lines
    from holdfast.check.report import Report

__all__ = ["check"]

# Whoever waits longer than this wants to see that something is going on.
_PATIENCE = 2.0
# A fix may uncover the next; one that uncovers itself would go on for ever.
_PASSES = 10


def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATHS",
            help="Files and folders; - is the standard input. Without any: this folder.",
            show_default=False,
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="CODES", help="Only these: HF2 is all that begins so. HF2,HF301"),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="CODES", help="All but these.")
    ] = None,
    pedantic: Annotated[
        bool, typer.Option("--pedantic", help="Also the rules that are wrong more often.")
    ] = False,
    form: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="How it is shown.")
    ] = "text",
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be mended safely.")] = False,
    unsafe_fixes: Annotated[
        bool,
        typer.Option(
            "--unsafe-fixes",
            help="Mend also what may change the meaning of the program; look at --diff first.",
        ),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what --fix would change, and change nothing.")
    ] = False,
    explain: Annotated[
        str | None, typer.Option(metavar="CODE", help="Say what a code means, and leave.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Be silent about the findings in this file.")
    ] = None,
    write_baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the findings to this file, and leave.")
    ] = None,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Only count, code by code.")
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Processes; as many as processors if not given."),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither use nor keep what was found before.")
    ] = False,
) -> None:
    """Find lifetime bugs by reading the code: leaked tasks, races at shutdown, swallowed cancels.

    Nothing of it is imported or run. Settings stand in pyproject.toml, under tool.holdfast.check;
    a line is excused by `# noqa: HF201`, and a file by `# holdfast: noqa`.

    Exit status 0: nothing found; 1: something; 2: wrong use; 130: interrupted.
    """
    if explain is not None:
        _explain(explain)
    asked = paths or ["."]
    _judge(asked, form, fix or unsafe_fixes or diff, statistics, baseline, write_baseline)
    run = _Run(
        asked,
        {
            "select": _codes(select),
            "ignore": _codes(ignore),
            "pedantic": pedantic or None,
            "jobs": jobs or default_jobs(),
            "cache": None if no_cache else _cache_folder(),
            "stdin": sys.stdin.buffer.read() if STDIN in asked else None,
        },
    )
    try:
        report = run.check()
        if diff:
            _show_diff(report, unsafe_fixes)
        if fix or unsafe_fixes:
            report = _mend(run, report, unsafe_fixes)
    except (NoSuchPath, BadSettings) as error:
        _bad_use(str(error))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise typer.Exit(130) from None
    lines = _lines(report)
    if write_baseline is not None:
        _write_baseline(write_baseline, report, lines)
    if baseline is not None:
        report = _without_known(baseline, report, lines)
    _show(report, form, statistics, lines)
    raise typer.Exit(0 if report.clean else 1)


class _Run:
    """What is asked for; it can be asked again, after a fix."""

    def __init__(self, paths: list[str], options: dict[str, Any]) -> None:
        self._paths = paths
        self._options = options

    def check(self) -> Report:
        with _Bar() as bar:
            return check_paths(self._paths, **self._options, progress=bar)


def _codes(words: list[str] | None) -> list[str] | None:
    if words is None:
        return None
    return [code for word in words for code in word.split(",") if code.strip()]


def _cache_folder() -> str:
    """Beside the project: where its settings or its repository are, or else here."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "pyproject.toml").exists() or (folder / ".git").exists():
            return str(folder / FOLDER)
    return str(here / FOLDER)


# --- wrong use ---------------------------------------------------------------------------------


def _judge(
    paths: list[str],
    form: str,
    mends: bool,
    statistics: bool,
    baseline: str | None,
    write_baseline: str | None,
) -> None:
    if form not in FORMATS:
        from difflib import get_close_matches

        near = get_close_matches(form, FORMATS, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        _bad_use(f"--format {form!r}: use one of {', '.join(FORMATS)}.{hint}")
    if statistics and form not in ("text", "json"):
        _bad_use(f"--statistics can be had as text or json, not as {form}")
    if mends and STDIN in paths:
        _bad_use("what comes from the standard input cannot be mended: name the file")
    if baseline is not None and write_baseline is not None:
        _bad_use("--baseline and --write-baseline: read it or write it, one at a time")


def _bad_use(what: str) -> NoReturn:
    sys.stderr.write(f"holdfast: {what}\n")
    raise typer.Exit(2)


# --- what is done ------------------------------------------------------------------------------


def _explain(code: str) -> NoReturn:
    from holdfast.check.output.explain import own, shown_by
    from holdfast.cli.explain import explain

    told = own(code)
    if told:
        _out(told)
    else:
        explain(code)
        _out(shown_by(code))
    raise typer.Exit(0)


def _show_diff(report: Report, unsafe: bool) -> NoReturn:
    from holdfast.check.fixing import diff, mend

    mended = mend(report.findings, unsafe=unsafe)
    _out("".join(map(diff, mended)))
    count = sum(len(each.fixed) for each in mended)
    files = f"{len(mended)} file{'' if len(mended) == 1 else 's'}"
    sys.stderr.write(f"Would mend {count} in {files}.\n" if count else "Nothing to mend.\n")
    raise typer.Exit(1 if count else 0)


def _mend(run: _Run, report: Report, unsafe: bool) -> Report:
    from holdfast.check.fixing import mend, write

    count = 0
    for _ in range(_PASSES):
        mended = mend(report.findings, unsafe=unsafe)
        if not mended:
            break
        for each in mended:
            try:
                write(each)
            except OSError as error:
                _bad_use(f"{each.path} cannot be written: {error.strerror}")
            count += len(each.fixed)
        report = run.check()
    if count:
        sys.stderr.write(f"Mended {count}.\n")
    return report


def _write_baseline(file: str, report: Report, lines: Lines) -> NoReturn:
    from holdfast.check.baseline import Baseline

    try:
        Baseline.write(Path(file), report.findings, lines)
    except OSError as error:
        _bad_use(f"the baseline {file} cannot be written: {error.strerror}")
    sys.stderr.write(f"Wrote {len(report.findings)} to {file}.\n")
    raise typer.Exit(0)


def _without_known(file: str, report: Report, lines: Lines) -> Report:
    from dataclasses import replace

    from holdfast.check.baseline import BadBaseline, Baseline, gone_in_words

    try:
        known = Baseline.load(Path(file), lines)
    except BadBaseline as error:
        _bad_use(str(error))
    left = replace(report, findings=tuple(known.sift(report.findings)))
    gone = gone_in_words(known.gone(report.paths))
    if gone:
        sys.stderr.write(f"{gone}\n")
    return left


# --- what is printed ---------------------------------------------------------------------------


def _lines(report: Report) -> Lines:
    from holdfast.check.output.lines import Lines

    return Lines({STDIN: report.stdin} if report.stdin is not None else {})


def _show(report: Report, form: str, statistics: bool, lines: Lines) -> None:
    if statistics:
        from holdfast.check.output import statistics as counted

        as_json = form == "json"
        _out(counted.statistics_json(report) if as_json else counted.statistics(report))
    elif form == "json":
        from holdfast.check.output.json import json

        _out(json(report))
    elif form == "sarif":
        from holdfast import __version__
        from holdfast.check.output.sarif import sarif

        _out(sarif(report, __version__))
    elif form == "github":
        from holdfast.check.output.github import github

        _out(github(report))
    else:
        from holdfast.check.output.text import text

        _out(text(report, lines, colour=_is_colourful()))
    for path in report.not_checked:
        sys.stderr.write(f"holdfast: {path} is a notebook, and not checked\n")


def _is_colourful() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _out(text: str) -> None:
    # A file name or a line may hold what the terminal's encoding does not.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


class _Bar:
    """A progress bar on a terminal, from the moment on at which it has taken long."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._began < _PATIENCE or not sys.stderr.isatty():
            return
        if self._bar is None:
            self._bar = _new_bar(total)
        self._bar.update(self._bar.task_ids[0], completed=done)
        self._bar.refresh()


def _new_bar(total: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.completed:,} of {task.total:,} files"),
        BarColumn(),
        console=Console(file=sys.stderr),
        auto_refresh=False,
        transient=True,
    )
    bar.add_task("", total=total)
    bar.start()
    return bar
