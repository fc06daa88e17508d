"""A trace: everything that happened in one run, as plain data for the timeline and the page.

It holds no asyncio object, so it can be pickled, sent and written as JSON. `tracer` records it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

# The lanes that are not tasks: callbacks of the loop, and external events.
LOOP = -1
OUTSIDE = -2

# What put a handle into the queue.
Cause = Literal["start", "step", "timer", "cancel", "outside"]
Ending = Literal["", "returns", "fails", "cancelled"]


@dataclass(slots=True)
class Place:
    """A line of source, and the first and last line of the function around it."""

    file: str
    line: int
    function: str
    text: str
    first: int
    last: int


@dataclass(slots=True)
class StackPosition:
    """Where a task waits: the line of the program, and the awaits that lead there."""

    place: int
    # Indexes into `Trace.places`, outermost first; asyncio's own frames included.
    chain: list[int]
    # The function of asyncio that it waits in, such as `Lock.acquire`; empty in its own code.
    call: str


@dataclass(slots=True)
class Lane:
    """A task: its name, the line that created it, and its end."""

    number: int
    name: str
    # The line and the step that created it; None for a task that the run itself created.
    created_at: int | None
    created_in: int | None
    # Its position before its first step.
    entry: int | None
    end: Ending = ""
    ended_in: int | None = None
    error: str = ""
    error_type: str = ""
    # The line that raised the error.
    raised_at: int | None = None


@dataclass(slots=True)
class Step:
    """One handle that ran: its task, why it was in the queue, and what it did."""

    number: int
    instant: int
    time: float
    # The number of a task, or `LOOP`.
    lane: int
    cause: Cause
    # The step that queued it; for a cancel or an arrival the index of the event. Else None.
    by: int | None
    # Indexes into `Trace.positions`: where the task waited before the step, and waits after it.
    before: int | None = None
    after: int | None = None
    # The type of the exception that is thrown into the task, if one is.
    resumes_with: str = ""
    # The callback, if this is not a step of a task; and whether it belongs to asyncio.
    callback: str = ""
    internal: bool = False
    # The tasks that this step woke, started and cancelled.
    wakes: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    # How the task ended, if it ended here.
    end: Ending = ""
    # It ran after the end of the program, because it was ready then.
    settling: bool = False


@dataclass(slots=True)
class TraceEvent:
    """What the explorer did, or what arrived from outside, between two steps."""

    kind: Literal["choice", "cancel", "arrival"]
    # It happened before the step with this number, or inside it.
    step: int
    inside: bool
    instant: int
    time: float
    # The cancelled task; `OUTSIDE` for an arrival; the task that a choice favours, else `LOOP`.
    lane: int
    label: str
    # The kind of the choice, the name of the channel, or the state of the task that is cancelled.
    detail: str
    # The tasks that it woke.
    wakes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Cancellation:
    """A call of `cancel()`: of which task, by which, and where."""

    lane: int
    # The task that called it, `LOOP` for a callback, None for the explorer.
    by: int | None
    callback: str
    # The line of the call, if it is one of the program, and the line at which the task waited.
    place: int | None
    waits_at: int | None
    step: int


@dataclass(slots=True)
class Source:
    """Some lines of a file, as they were during the run."""

    file: str
    first: int
    lines: list[str]


@dataclass(slots=True)
class Trace:
    """A run from its first step to its verdict."""

    lanes: list[Lane] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    events: list[TraceEvent] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    positions: list[StackPosition] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    cancellations: list[Cancellation] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The trace as dicts, lists, strings and numbers."""
        return asdict(self)
