"""What happened in one run, told in full: plain data for the timeline and the page.

No asyncio object is in here: a story can be pickled, sent, and written as JSON. `trace` writes it;
nothing here knows how it is shown.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = [
    "LOOP",
    "OUTSIDE",
    "Cause",
    "Ending",
    "Event",
    "Lane",
    "Place",
    "Source",
    "Stand",
    "Step",
    "Story",
]

# The lanes that are no tasks: callbacks that the loop runs for nobody, and the world outside.
LOOP = -1
OUTSIDE = -2

# Who put a handle into the queue.
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
class Stand:
    """Where a task stands still: the line of the program, and the awaits that lead there."""

    place: int
    # Indexes into `Story.places`, outermost first; asyncio's own frames included.
    chain: list[int]
    # The call of asyncio's in which it stands, such as `Lock.acquire`; empty in its own code.
    call: str


@dataclass(slots=True)
class Lane:
    """A task: its name, the line that made it, and its end."""

    number: int
    name: str
    # The place and the step of its birth; None where the run itself has made it.
    birth: int | None
    born_in: int | None
    # Where it stood before its first step.
    entry: int | None
    end: Ending = ""
    ended_in: int | None = None
    error: str = ""
    error_type: str = ""
    # The line that raised the error.
    raised_at: int | None = None


@dataclass(slots=True)
class Step:
    """One handle that ran: whose, why it was in the queue, and what came of it."""

    number: int
    instant: int
    time: float
    # The number of a task, or `LOOP`.
    lane: int
    cause: Cause
    # The step that queued it; for a cancel or an arrival the index of the event. Else None.
    by: int | None
    # Indexes into `Story.stands`: where the task stood before, and stands after it.
    before: int | None = None
    after: int | None = None
    # The error with which the awaited thing ended, if it did: what the task resumes with.
    resumes_with: str = ""
    # The callback, if this is no step of a task; and whether it is one of asyncio's own.
    callback: str = ""
    internal: bool = False
    # The tasks whose next step this one has queued, those it has started, those it has cancelled.
    wakes: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    # How the task ended, if it ended here.
    end: Ending = ""
    # After the end of the program: what was ready still ran.
    settling: bool = False


@dataclass(slots=True)
class Event:
    """What the explorer, or the world, did between two steps."""

    kind: Literal["choice", "cancel", "arrival"]
    # It came before the step of this number, or inside it.
    step: int
    inside: bool
    instant: int
    time: float
    # For a cancel the victim; for an arrival `OUTSIDE`; for a choice whom it favours, else `LOOP`.
    lane: int
    label: str
    # The kind of the choice, the name of the channel, or the state in which a cancel met its victim.
    detail: str
    # The tasks whose next step it has queued.
    wakes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Source:
    """Some lines of a file, as they were when the story was written."""

    file: str
    first: int
    lines: list[str]


@dataclass(slots=True)
class Story:
    """A run from its first step to its verdict."""

    lanes: list[Lane] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    stands: list[Stand] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Nothing but dicts, lists, strings and numbers."""
        return asdict(self)
