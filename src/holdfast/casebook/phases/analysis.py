"""The report's `analyze_taskgroup_error`, by provenance: in which phase was an error raised?"""

from __future__ import annotations

from typing import TypedDict

import holdfast

__all__ = ["Analysis", "analyze_taskgroup_error"]


class Analysis(TypedDict):
    """The report's four answers."""

    has_operational_errors: bool
    operational_errors: tuple[BaseException, ...]
    cleanup_errors: tuple[BaseException, ...]
    can_continue: bool


def analyze_taskgroup_error(e: BaseException) -> Analysis:
    """Tell errors of the work from errors of the clean-up, at any depth, whatever they say.

    >>> group = ExceptionGroup("cleanup", [ExceptionGroup("TaskGroup", [OSError("cancelled")])])
    >>> analyze_taskgroup_error(group)["operational_errors"]
    (OSError('cancelled'),)
    """
    failure = holdfast.split(e)
    return {
        "has_operational_errors": bool(failure.operational),
        "operational_errors": failure.operational,
        "cleanup_errors": failure.cleanup,
        "can_continue": not failure.operational,
    }
