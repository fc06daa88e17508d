"""How leaks are asked for: `--holdfast`, the baseline's two options, and the ini file.

pytest reads this at every start, also where nobody asks: nothing of holdfast is imported here.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Literal, cast, get_args

import pytest

__all__ = ["MARKER", "Mode", "add_options", "baseline_to_read", "baseline_to_write", "mode"]

Mode = Literal["fail", "report", "off"]
_MODES: tuple[Mode, ...] = get_args(Mode)

MARKER = (
    "leaks(check=[...], ignore=[...], reason='...', grace=0.25): with --holdfast, what is looked "
    "for after this test, and what may be left behind. check=['tasks'] looks for tasks alone, "
    "check=['+descriptors'] for descriptors too; check=[] for nothing. That, and each ignore, "
    "needs a reason."
)


def add_options(parser: pytest.Parser) -> None:
    """Make the options and the lines of the ini file known."""
    group = parser.getgroup("holdfast-leaks", "holdfast: what tests leave behind")
    # argparse would take the path in `pytest --holdfast tests/` for the mode. So no option has a
    # value here: each mode is an option of its own that happens to be spelled with a "=".
    group.addoption(
        "--holdfast",
        *(f"--holdfast={each}" for each in _MODES),
        dest="holdfast",
        action=_SetMode,
        nargs=0,
        default=None,
        help="look for what each test leaves behind, and fail it; =report tells at the end and "
        "fails nothing; =off overrides the ini file",
    )
    group.addoption(
        "--holdfast-baseline",
        metavar="FILE",
        help="leaks that stand in this file are known, and fail nothing",
    )
    group.addoption(
        "--holdfast-write-baseline",
        metavar="FILE",
        help="write the leaks of this run into this file; fails nothing, as --holdfast=report",
    )
    _add_ini(parser)


def mode(config: pytest.Config) -> Mode:
    """What is to be done about leaks. The command line wins over the ini file."""
    asked = config.getoption("holdfast") or _ini_mode(config)
    if config.getoption("holdfast_write_baseline"):
        if asked == "off" and config.getoption("holdfast"):
            raise pytest.UsageError("--holdfast=off: there is nothing to write a baseline of")
        return "report"
    if config.getoption("holdfast_baseline") and asked is None:
        raise pytest.UsageError("--holdfast-baseline needs --holdfast, or --holdfast=report")
    return asked or "off"


def baseline_to_read(config: pytest.Config) -> Path | None:
    """The file of the leaks that are known."""
    return _path(config, "holdfast_baseline")


def baseline_to_write(config: pytest.Config) -> Path | None:
    """The file that the leaks of this run are written to."""
    return _path(config, "holdfast_write_baseline")


class _SetMode(argparse.Action):
    """Takes the mode from the spelling of the option."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        spelled = (option_string or "").partition("=")[2]
        setattr(namespace, self.dest, spelled or "fail")


def _add_ini(parser: pytest.Parser) -> None:
    parser.addini("holdfast", "what is done about leaks: fail, report or off", default="")
    parser.addini(
        "holdfast_checks",
        "what is looked for, in place of the usual; with a leading + (+descriptors), beside it",
        type="args",
        default=[],
    )
    parser.addini("holdfast_grace", "seconds that things get to end by themselves", default="")
    parser.addini(
        "holdfast_ignore",
        "what may be left behind, one a line, as 'pattern: reason'",
        type="linelist",
        default=[],
    )


def _ini_mode(config: pytest.Config) -> Mode | None:
    asked = config.getini("holdfast")
    if asked not in ("", *_MODES):
        raise pytest.UsageError(
            f"holdfast = {asked!r} in the ini file: use one of {', '.join(_MODES)}"
        )
    return cast("Mode | None", asked or None)


def _path(config: pytest.Config, option: str) -> Path | None:
    named = config.getoption(option)
    return config.invocation_params.dir / named if named else None
