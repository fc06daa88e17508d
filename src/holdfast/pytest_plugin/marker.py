"""What is asked for: the arguments of @pytest.mark.explore, under those of the command line.

Only who asked for what is decided here. What an argument may be, `holdfast.explore` knows.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from holdfast.explore import Campaign
from holdfast.pytest_plugin.marks import keywords

__all__ = ["arguments"]

_NAMES = tuple(
    name
    for name, parameter in inspect.signature(Campaign).parameters.items()
    # What a test is made of is here, and cannot be sent to a cluster.
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name != "cluster"
)


def arguments(item: pytest.Item) -> dict[str, Any]:
    """The arguments for this test. A marker on the class or the module gives the defaults for one
    on the test itself."""
    asked: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers("explore"))):
        asked |= keywords(mark, _NAMES)
    schedules = item.config.getoption("holdfast_schedules")
    seconds = item.config.getoption("holdfast_seconds")
    if schedules is not None or seconds is not None:
        # A deeper run at night: a small bound of the marker's may not cut it short.
        asked |= {"schedules": schedules, "seconds": seconds}
    return asked
