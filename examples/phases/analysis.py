"""The report's `analyze_taskgroup_error`, based on the phase in which an error was raised."""

from __future__ import annotations

from typing import TypedDict

import handfast

__all__ = ["Analysis", "analyze_taskgroup_error"]


class Analysis(TypedDict):
    """The four fields of the report."""

    has_operational_errors: bool
    operational_errors: tuple[BaseException, ...]
    cleanup_errors: tuple[BaseException, ...]
    can_continue: bool


def analyze_taskgroup_error(e: BaseException) -> Analysis:
    """Separate errors of the work from errors of the clean-up, at any depth, whatever their text.

    >>> group = ExceptionGroup("cleanup", [ExceptionGroup("TaskGroup", [OSError("cancelled")])])
    >>> analyze_taskgroup_error(group)["operational_errors"]
    (OSError('cancelled'),)
    """
    failure = handfast.split_errors(e)
    return {
        "has_operational_errors": bool(failure.operational),
        "operational_errors": failure.operational,
        "cleanup_errors": failure.cleanup,
        "can_continue": not failure.operational,
    }
