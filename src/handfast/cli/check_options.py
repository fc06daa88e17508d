"""The options of `handfast check`. Only the standard library is used: it needs no extra."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from handfast._check.output import FORMATS
from handfast._did_you_mean import suggest_or_list

_HELP = """\
Find lifetime bugs in source code: leaked tasks, races at shutdown, swallowed cancellations.

The code is not imported or run. Settings are in pyproject.toml, under tool.handfast.check;
`# noqa: HF201` suppresses findings of a line, and `# handfast: noqa` those of a file.
"""
_STATUS = "Exit status 0: no findings; 1: findings; 2: wrong usage; 130: interrupted."


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        """Print one line; the usage of so many options would hide it."""
        self.exit(2, f"handfast: {message}; `{self.prog} --help` lists all options\n")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options; print a message and exit if they are wrong."""
    return _parser().parse_args(arguments)


def option_names() -> list[str]:
    """Return the options, for the completion of a shell."""
    return [name for action in _parser()._actions for name in action.option_strings]


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="handfast check",
        usage="%(prog)s [OPTIONS] [PATHS ...]",
        description=_HELP,
        epilog=_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATHS",
        help="files and folders; - is standard input; default: the current folder",
    )
    _add_selection(parser.add_argument_group("what is checked"))
    _add_output(parser.add_argument_group("output"))
    _add_fixes(parser.add_argument_group("fixes and suppressions"))
    _add_run(parser.add_argument_group("the run"))
    return parser


def _add_selection(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    codes = {"metavar": "CODES", "action": "extend", "type": _codes}
    add("--select", **codes, help="only these codes or prefixes of codes, for example HF2,HF301")  # type: ignore[arg-type]
    add("--extend-select", **codes, default=[], help="these codes in addition to the settings")  # type: ignore[arg-type]
    add("--ignore", **codes, help="leave out these codes or prefixes")  # type: ignore[arg-type]
    add(
        "--per-file-ignores",
        metavar="PATTERN:CODE",
        action="extend",
        type=_ignores,
        help="leave out a code in some files, for example 'tests/*:HF1'",
    )
    add(
        "--exclude",
        metavar="PATTERNS",
        action="extend",
        type=_words,
        help="leave out files and folders, as the setting does",
    )
    add(
        "--pedantic",
        action="store_true",
        help="also findings with medium confidence or little harm",
    )
    add(
        "--config",
        metavar="FILE|KEY=VALUE",
        action="append",
        default=[],
        help="a settings file to use in place of pyproject.toml, or one setting",
    )
    add("--stdin-filename", metavar="FILE", help="the file that standard input is the content of")


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        *("--output-format", "--format"),
        metavar="FORMAT",
        dest="form",
        type=_form,
        default="text",
        help=f"one of {', '.join(FORMATS)}; default: text",
    )
    add("--color", metavar="WHEN", choices=("auto", "always", "never"), default="auto",
        help="auto, always or never")  # fmt: skip
    add("-q", "--quiet", action="store_true", help="print findings only")
    add("--statistics", action="store_true", help="only show the number of findings of each code")
    add("--show-files", action="store_true", help="list the files that would be checked")
    add("--show-settings", action="store_true", help="show the settings of these files")


def _add_fixes(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--fix", action="store_true", help="apply the safe fixes")
    add(
        "--unsafe-fixes",
        action="store_true",
        help="also apply fixes that may change what the program does; review with --diff first",
    )
    add("--fix-only", action="store_true", help="apply the safe fixes, and report nothing")
    add("--diff", action="store_true", help="show what the fixes would change, as a patch")
    add("--add-noqa", action="store_true", help="add a noqa comment for each finding")
    add("--baseline", metavar="FILE", help="report only findings that are not in this file")
    add("--write-baseline", metavar="FILE", help="write the findings to this file, and exit")


def _add_run(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--watch", action="store_true", help="check again whenever a file changes")
    add("--exit-zero", action="store_true", help="exit with 0 also if there are findings")
    add("--jobs", metavar="N", type=_jobs, help="the number of processes; default: one a processor")
    add("--no-cache", action="store_true", help="neither read nor write results of earlier runs")
    group.add_argument("--explain", metavar="CODE", help=argparse.SUPPRESS)


def _words(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]


_codes = _words


def _ignores(value: str) -> list[tuple[str, str]]:
    pairs = [word.rpartition(":") for word in _words(value)]
    if not pairs or not all(pattern and code for pattern, _, code in pairs):
        raise argparse.ArgumentTypeError(
            f"{value!r} is not PATTERN:CODE, for example 'tests/*:HF1'"
        )
    return [(pattern, code) for pattern, _, code in pairs]


def _form(value: str) -> str:
    if value not in FORMATS:
        raise argparse.ArgumentTypeError(
            f"there is no format {value!r}{suggest_or_list(value, FORMATS)}"
        )
    return value


def _jobs(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"{value!r} is not a number of processes")
    return int(value)
