"""The options of an explored test: the arguments of @pytest.mark.explore, under the command line's.

What an argument may be is checked by `Options`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from handfast._explore.search.plan import Options
from handfast.pytest_plugin.marker_arguments import keywords

# The objects that a test is made of are in this process, and cannot be sent to a cluster.
_NAMES = tuple(field.name for field in fields(Options) if field.name != "cluster")


def options_of(item: pytest.Item) -> Options:
    """The options for this test.

    A marker on the class or the module gives the defaults for one on the test itself.
    """
    given: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers("explore"))):
        given |= keywords(mark, _NAMES)
    schedules = item.config.getoption("handfast_schedules")
    seconds = item.config.getoption("handfast_seconds")
    if schedules is not None or seconds is not None:
        # A deeper run at night: the marker's smaller limit must not stop it early.
        given |= {"schedules": schedules, "seconds": seconds}
    return Options(**given)
