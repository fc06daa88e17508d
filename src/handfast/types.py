"""Classes that handfast returns and that a program only names in annotations.

Importing this module loads nothing of the explorer until one of its names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from handfast._origin import Origin
from handfast._outcome import Outcome
from handfast._public_names import load_on_use, publish
from handfast._runtime.cancel_reason import CancelReason
from handfast._runtime.failure import Failure
from handfast._runtime.hosting.stream import Stream
from handfast._runtime.process.exit_status import ExitStatus
from handfast._runtime.process.output_pipe import Pipe
from handfast._runtime.process.run_process import ProcessResult
from handfast._runtime.report import CloseReport, Straggler, TaskEnd

if TYPE_CHECKING:
    from handfast._explore.result import Coverage
    from handfast._explore.victim import Victim

__all__ = [
    "CancelReason",
    "CloseReport",
    "Coverage",
    "ExitStatus",
    "Failure",
    "Origin",
    "Outcome",
    "Pipe",
    "ProcessResult",
    "Straggler",
    "Stream",
    "TaskEnd",
    "Victim",
]

publish(
    __name__,
    [
        CancelReason,
        CloseReport,
        ExitStatus,
        Failure,
        Origin,
        Outcome,
        Pipe,
        ProcessResult,
        Straggler,
        Stream,
        TaskEnd,
    ],
)

__getattr__ = load_on_use(
    __name__,
    {
        "Coverage": "handfast._explore.result",
        "Victim": "handfast._explore.victim",
    },
)
