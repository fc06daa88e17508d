"""The options of `--handfast-explore`, which explores the async tests of a suite as they are.

pytest imports this at every start, so it imports nothing else of handfast.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

_OPTION = "--handfast-explore"
# Set in the pytest that a worker of a cluster starts: where it writes its results, and its time.
WORKER = "HANDFAST_EXPLORE_WORKER"
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
# The seconds for a suite, and for one test.
_SUITE, _TEST = 60.0, 2.0


@dataclass(frozen=True)
class SuiteOptions:
    """How a suite is explored."""

    budget: float = _SUITE
    per_test: float = _TEST
    cancel: bool = False
    lateness: float = 0.0
    isolated: bool = False
    schedules: int | None = None
    baseline: Path | None = None
    write_baseline: Path | None = None
    json: Path | None = None
    # The folder of the project, in which schedules are kept; None: they are not.
    corpus: Path | None = None
    cluster: str | None = None


def add_options(parser: pytest.Parser, config: pytest.Config | None) -> None:
    """Add the options."""
    group = parser.getgroup("handfast", "handfast: explore schedules")
    # argparse would take the path in `pytest --handfast-explore tests/` for the budget. So the
    # option has no value, and the form with a budget, if it is used, is an option of its own.
    group.addoption(
        _OPTION,
        *sorted({word for word in _words(config) if word.startswith(f"{_OPTION}=")}),
        dest="handfast_explore",
        action=_SetBudget,
        nargs=0,
        default=None,
        help="after the tests, run each async test that has passed under many schedules; =BUDGET "
        "such as =10m or =90s: how long for all tests (60s)",
    )
    group.addoption(
        f"{_OPTION}-cancel",
        action="store_true",
        help="with --handfast-explore: cancel tasks that the tests cancel at other points, too, and "
        "a test and its tasks inside calls of a library",
    )
    group.addoption(
        f"{_OPTION}-lateness",
        metavar="S",
        type=_lateness,
        default=0.0,
        help="with --handfast-explore: the event loop may be this many seconds late, such as 0.05",
    )
    group.addoption(
        f"{_OPTION}-isolated",
        action="store_true",
        help="with --handfast-explore or --handfast-replay: run each schedule in a forked process",
    )
    group.addoption(
        f"{_OPTION}-baseline",
        metavar="FILE",
        help="with --handfast-explore: findings in this file are known, and fail nothing",
    )
    group.addoption(
        f"{_OPTION}-write-baseline",
        metavar="FILE",
        help="with --handfast-explore: write the findings of this run to this file",
    )
    group.addoption(
        f"{_OPTION}-json",
        metavar="FILE",
        help="with --handfast-explore: write the result for each test to this file",
    )
    group.addoption(
        f"{_OPTION}-no-corpus",
        action="store_true",
        help="with --handfast-explore: do not begin with the schedules in .handfast/corpus, where "
        "the last run stopped, and keep none",
    )
    group.addoption(
        f"{_OPTION}-cluster",
        metavar="ADDRESS",
        help="with --handfast-explore: explore the tests on the dask.distributed cluster with this "
        "address, such as tcp://10.0.0.1:8786; its workers need the same files in the same place",
    )


def suite_options(config: pytest.Config) -> SuiteOptions | None:
    """The options, None without `--handfast-explore`."""
    budget = config.getoption("handfast_explore")
    if budget is None:
        _require_explore(config)
        return None
    seconds = config.getoption("handfast_seconds")
    options = SuiteOptions(
        isolated=wants_isolation(config),
        budget=parse_budget(budget),
        per_test=seconds or _TEST,
        cancel=bool(config.getoption("handfast_explore_cancel")),
        lateness=config.getoption("handfast_explore_lateness") or 0.0,
        schedules=config.getoption("handfast_schedules"),
        baseline=_path(config, "handfast_explore_baseline"),
        write_baseline=_path(config, "handfast_explore_write_baseline"),
        json=_path(config, "handfast_explore_json"),
        corpus=None if config.getoption("handfast_explore_no_corpus") else config.rootpath,
        cluster=config.getoption("handfast_explore_cluster"),
    )
    if options.cluster is not None and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(f"{_OPTION}-cluster: the workers of xdist are not needed; omit -n")
    return _of_worker(options) if WORKER in os.environ else options


def _of_worker(options: SuiteOptions) -> SuiteOptions:
    """The options of a pytest that a worker of a cluster has started."""
    given = json.loads(os.environ[WORKER])
    own = replace(options, budget=float(given["budget"]), json=Path(given["json"]))
    return replace(own, cluster=None, baseline=None, write_baseline=None)


def wants_isolation(config: pytest.Config) -> bool:
    """Whether each schedule runs in a fork."""
    isolated = bool(config.getoption("handfast_explore_isolated"))
    if isolated and not hasattr(os, "fork"):
        raise pytest.UsageError(f"{_OPTION}-isolated: this platform has no fork")
    return isolated


def parse_budget(text: str) -> float:
    """Seconds from `90`, `90s`, `10m`, `1.5h`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds > 0:
        raise pytest.UsageError(f"{_OPTION}={text}: use a time such as 90s, 10m or 1h")
    return seconds


def _require_explore(config: pytest.Config) -> None:
    if config.getoption("handfast_explore_isolated") and not config.getoption("handfast_replay"):
        raise pytest.UsageError(f"{_OPTION}-isolated needs {_OPTION} or --handfast-replay")
    for name in (
        "cancel",
        "lateness",
        "baseline",
        "write-baseline",
        "json",
        "no-corpus",
        "cluster",
    ):
        if config.getoption(f"handfast_explore_{name.replace('-', '_')}"):
            raise pytest.UsageError(f"{_OPTION}-{name} needs {_OPTION}")


def _path(config: pytest.Config, option: str) -> Path | None:
    named = config.getoption(option)
    return config.invocation_params.dir / named if named else None


def _lateness(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 60:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, below 60")
    return seconds


class _SetBudget(argparse.Action):
    """Takes the budget from the name of the option."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        spelled = (option_string or "").partition("=")[2]
        setattr(namespace, self.dest, spelled or f"{_SUITE:g}s")


def _words(config: pytest.Config | None) -> Iterator[str]:
    """Every word from which pytest takes options."""
    if config is not None:
        yield from map(str, config.invocation_params.args)
        try:
            yield from config.getini("addopts")
        except (ValueError, KeyError):  # a broken ini file: pytest reports it
            pass
    try:
        yield from shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    except ValueError:  # a quote is missing: pytest reports it
        pass
