"""The pytest plugin: options and markers. The rest is imported when one of them is used.

    marker_arguments    the keyword arguments of a marker

    explore/            tests with `@pytest.mark.explore`
        options         the options of the marker and of the command line
        item            the explored test: what runs, what is raised, what is printed
        marked_tests    how many schedules those with a marker ran
        fixtures        async fixtures, set up in each schedule
        output          captured output and warnings of hundreds of runs
        failed_report   the report that makes a test fail with a text of ours
        finding_output  the line that replays a finding, and its page

    explore/suite/      suites as they are, with `--handfast-explore`
        options         the options of the command line
        explorer        which tests of a suite are explored, when and for how long
        item_explorer   one of them: can it be explored, what breaks it, is that confirmed
        item_run        its set-up, call and teardown, for one schedule
        run_reports     the reports of its subtests
        cluster         the tests of a suite on a cluster
        replay          a token for a test without a marker
        explored        the result for one test
        summary         failures and the summary

    leaks/              leaks of tests, with `--handfast`
        options         the command line and the ini file
        marker          `@pytest.mark.leaks`, and ignores that match nothing
        owners          the test or fixture that an object belongs to
        lazy_parts      what a test creates for a fixture of a wider scope
        plugin          when it checks, and what fails
        reporting       from the workers of xdist to the terminal, GitHub and JUnit

A test with `@pytest.mark.explore(...)` runs under the explorer, whatever other plugin for asyncio
is installed; no other test is changed. `--handfast-explore` runs the suite as it is, and explores
its async tests afterwards. Async fixtures of function scope are set up and torn down
in each schedule. Sync fixtures and the instance of a test class are created once for the test and
shared by all its schedules, as with Hypothesis.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from handfast.pytest_plugin.explore.marked_tests import MarkedReporter
from handfast.pytest_plugin.explore.suite import options as suite_options
from handfast.pytest_plugin.leaks import options as leak_options

__all__ = ["pytest_addoption", "pytest_collection_finish", "pytest_configure"]

_MARKER = (
    "explore(schedules=1000, seconds=None, cancel=False, model='strict', strategy='portfolio', "
    "stall=0.1, faults=(), invariant=None, ignore=(), seed=0, workers=1, real_io=False): run this "
    "async test under many schedules, and show one that fails. Async fixtures are set up in each "
    "schedule; sync fixtures are shared by all schedules."
)


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options of the command line and of the ini file."""
    leak_options.add_options(parser)
    suite_options.add_options(parser, pluginmanager.get_plugin("pytestconfig"))
    group = parser.getgroup("handfast", "handfast: explore schedules")
    group.addoption(
        "--handfast-replay",
        metavar="TOKEN",
        help="run only the schedule of this token; select its test on the command line",
    )
    group.addoption(
        "--handfast-schedules",
        metavar="N",
        type=_positive(int, "a whole number"),
        help="number of schedules for each explored test; overrides its marker",
    )
    group.addoption(
        "--handfast-seconds",
        metavar="S",
        type=_positive(float, "a number of seconds"),
        help="seconds for each explored test; overrides its marker",
    )
    group.addoption(
        "--handfast-html",
        metavar="DIR",
        help="write each counterexample as an HTML page to this folder",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and the leak detector if it is enabled."""
    config.addinivalue_line("markers", _MARKER)
    config.addinivalue_line("markers", leak_options.MARKER)
    config.pluginmanager.register(MarkedReporter(), "handfast-marked-reporter")
    _register_suite_explorer(config)
    mode = leak_options.mode(config)
    if mode != "off":
        from handfast.pytest_plugin.leaks.plugin import LeakPlugin
        from handfast.pytest_plugin.leaks.reporting import LeakReporter

        reporter = LeakReporter(config, mode)
        config.pluginmanager.register(LeakPlugin(config, mode, reporter), "handfast-leaks")
        config.pluginmanager.register(reporter, "handfast-leak-reporter")


def _register_suite_explorer(config: pytest.Config) -> None:
    options = suite_options.suite_options(config)
    if options is not None:
        from handfast.pytest_plugin.explore.suite.explorer import SuiteExplorer
        from handfast.pytest_plugin.explore.suite.summary import SuiteReporter

        reporter = SuiteReporter(config, options)
        explorer = SuiteExplorer(config, options, reporter)
        config.pluginmanager.register(explorer, "handfast-explorer")
        config.pluginmanager.register(reporter, "handfast-explore-reporter")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Replace the marked tests. This late because markers may be added until now, and because
    other plugins replace async tests, too."""
    if any(item.get_closest_marker("explore") for item in session.items):
        from handfast.pytest_plugin.explore.item import replace_items

        replace_items(session)
    elif session.config.getoption("handfast_replay") and session.items:
        from handfast.pytest_plugin.explore.suite.replay import replay_unmarked

        replay_unmarked(session)


def _positive(kind: type[int] | type[float], name: str) -> Callable[[str], int | float]:
    """Return a type for argparse: a number of this kind that is more than 0."""

    def positive(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(0)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text!r} is not {name} above 0")
        return value

    return positive
