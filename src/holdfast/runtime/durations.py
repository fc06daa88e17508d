"""Spans of time that users pass in: checked at once, where the mistake is."""

from __future__ import annotations

import math

__all__ = ["seconds"]


def seconds(what: str, value: float) -> float:
    """`value` as a number of seconds, or a clear error.

    >>> seconds("grace", -1)
    Traceback (most recent call last):
    ValueError: grace must be a number of seconds, zero or more, not -1
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} must be a number of seconds, not {value!r}")
    if math.isnan(value) or value < 0:
        raise ValueError(f"{what} must be a number of seconds, zero or more, not {value!r}")
    # A year is for ever; timers of some loops overflow on more.
    return min(float(value), 365 * 86_400.0)
