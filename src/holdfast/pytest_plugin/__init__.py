"""holdfast inside pytest: the door. Options and markers, and nothing else until one is used.

Explored tests (`@pytest.mark.explore`):

    marker      what @pytest.mark.explore and the command line ask for
    item        the test that is explored: what runs, what is raised, what is printed
    fixtures    async fixtures: made anew in each schedule, on the explored loop
    quiet       what hundreds of runs say and leave behind

What tests leave behind (`--holdfast`):

    leak_options      what the command line and the ini file ask for
    leak_marker       what @pytest.mark.leaks asks for, and which ignores were of use
    leak_owners       the tests and fixtures that things belong to
    leak_plugin       when it is looked, and what fails
    leak_tidings      what is found, from the workers of xdist to the end of the run
    leak_annotations  for GitHub and JUnit

A test marked with `@pytest.mark.explore(...)` is run under the explorer, whatever other plugin for
asyncio is there; no other test is touched. Async fixtures of function scope are set up and torn
down inside each schedule. Sync fixtures, and the instance of a test class, are made once for the
test and shared by all its schedules, as with Hypothesis.
"""

from __future__ import annotations

import argparse

import pytest

from holdfast.pytest_plugin import leak_options

__all__ = ["pytest_addoption", "pytest_collection_finish", "pytest_configure"]

_MARKER = (
    "explore(schedules=1000, seconds=None, cancel=False, model='strict', strategy='portfolio', "
    "stall=0.1, faults=(), invariant=None, ignore=(), seed=0, workers=1, real_io=False): run this "
    "async test under many schedules, and show the one that breaks it. Async fixtures are made "
    "anew in each schedule; sync fixtures are shared by all of them."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """What may be asked for on the command line."""
    leak_options.add_options(parser)
    group = parser.getgroup("holdfast", "holdfast: explore schedules")
    group.addoption(
        "--holdfast-replay",
        metavar="TOKEN",
        help="run the one schedule that this token stands for, in the one test that is named",
    )
    group.addoption(
        "--holdfast-schedules",
        metavar="N",
        type=_positive(int, "a whole number"),
        help="how many schedules each explored test gets, whatever its marker says",
    )
    group.addoption(
        "--holdfast-seconds",
        metavar="S",
        type=_positive(float, "a number of seconds"),
        help="how long each explored test may take, whatever its marker says",
    )
    group.addoption(
        "--holdfast-html",
        metavar="DIR",
        help="write the page of each counterexample into this folder",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known, and look for leaks if that is asked for."""
    config.addinivalue_line("markers", _MARKER)
    config.addinivalue_line("markers", leak_options.MARKER)
    mode = leak_options.mode(config)
    if mode != "off":
        from holdfast.pytest_plugin.leak_plugin import LeakPlugin
        from holdfast.pytest_plugin.leak_tidings import Tidings

        tidings = Tidings(config, mode)
        config.pluginmanager.register(LeakPlugin(config, mode, tidings), "holdfast-leaks")
        config.pluginmanager.register(tidings, "holdfast-tidings")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Take over the tests that are marked. This late, since markers may be added until now, and
    other plugins put items of their own in the place of async tests."""
    if any(item.get_closest_marker("explore") for item in session.items):
        from holdfast.pytest_plugin.item import take_over

        take_over(session)


class _positive:  # noqa: N801 - argparse shows the name of what it is given as a type
    """A number of this kind that is more than 0."""

    def __init__(self, kind: type[int] | type[float], words: str) -> None:
        self._kind = kind
        self._words = words

    def __call__(self, text: str) -> int | float:
        try:
            value = self._kind(text)
        except ValueError:
            value = self._kind(0)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text!r} is not {self._words} above 0")
        return value
