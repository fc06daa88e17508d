"""The options of the leak detector: `--handfast`, the two of the baseline, and the ini file.

pytest imports this at every start, with or without `--handfast`, so it imports nothing else of
handfast.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Literal, cast, get_args

import pytest

Mode = Literal["fail", "report", "off"]
_MODES: tuple[Mode, ...] = get_args(Mode)

MARKER = (
    "leaks(check=[...], ignore=[...], reason='...', grace=0.25): with --handfast, what to check "
    "after this test, and which leaks to ignore. check=['tasks'] checks only tasks, "
    "check=['+descriptors'] also descriptors, check=[] nothing. An ignore and check=[] need a "
    "reason."
)


def add_options(parser: pytest.Parser) -> None:
    """Add the options and the settings of the ini file."""
    group = parser.getgroup("handfast-leaks", "handfast: leaks of tests")
    # argparse would take the path in `pytest --handfast tests/` for the mode. So the option has no
    # value: each mode is an option of its own, with a "=" in its name.
    group.addoption(
        "--handfast",
        *(f"--handfast={each}" for each in _MODES),
        dest="handfast",
        action=_SetMode,
        nargs=0,
        default=None,
        help="fail a test that leaks tasks, timers, threads, processes or connections; =report "
        "prints the leaks at the end and fails nothing; =off overrides the ini file",
    )
    group.addoption(
        "--handfast-baseline",
        metavar="FILE",
        help="leaks in this file are known, and fail nothing",
    )
    group.addoption(
        "--handfast-write-baseline",
        metavar="FILE",
        help="write the leaks of this run to this file; implies --handfast=report",
    )
    _add_ini(parser)


def mode(config: pytest.Config) -> Mode:
    """Return what to do about leaks. The command line wins over the ini file."""
    wanted = config.getoption("handfast") or _ini_mode(config)
    if config.getoption("handfast_write_baseline"):
        if wanted == "off" and config.getoption("handfast"):
            raise pytest.UsageError("--handfast-write-baseline cannot be used with --handfast=off")
        return "report"
    if config.getoption("handfast_baseline") and wanted is None:
        raise pytest.UsageError("--handfast-baseline needs --handfast, or --handfast=report")
    return wanted or "off"


def baseline_to_read(config: pytest.Config) -> Path | None:
    """Return the file with the known leaks."""
    return _path(config, "handfast_baseline")


def baseline_to_write(config: pytest.Config) -> Path | None:
    """Return the file to write the leaks of this run to."""
    return _path(config, "handfast_write_baseline")


class _SetMode(argparse.Action):
    """Takes the mode from the name of the option."""

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
    parser.addini("handfast", "what to do about leaks: fail, report or off", default="")
    parser.addini(
        "handfast_checks",
        "the checks, instead of the default ones; +name adds to the default ones",
        type="args",
        default=[],
    )
    parser.addini("handfast_grace", "seconds that objects get to end by themselves", default="")
    parser.addini(
        "handfast_ignore",
        "leaks to ignore, one on a line, as 'pattern: reason'",
        type="linelist",
        default=[],
    )


def _ini_mode(config: pytest.Config) -> Mode | None:
    wanted = config.getini("handfast")
    if wanted not in ("", *_MODES):
        raise pytest.UsageError(
            f"handfast = {wanted!r} in the ini file: use one of {', '.join(_MODES)}"
        )
    return cast("Mode | None", wanted or None)


def _path(config: pytest.Config, option: str) -> Path | None:
    named = config.getoption(option)
    return config.invocation_params.dir / named if named else None
