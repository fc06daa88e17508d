"""An object that is alive now: what it is, where it was created, where it waits."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from handfast._census.creation import Creation


def _nowhere() -> tuple[str, ...]:
    return ()


def _of_nothing() -> None:
    return None


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class LiveObject:
    """One object as it was when its kind was listed.

    A kind only lists. Whether an object is a leak is decided in `handfast._leaks.judge`, from the
    fields `owner`, `library`, `ends_by_itself` and `part_of`.
    """

    check: str
    """The name of its kind: `tasks`, `timers`..."""
    code: str
    """The catalogue code of the leak that it may be."""
    key: Hashable
    """The same for the same object in every snapshot."""
    what: str
    """What it is, for reports."""
    ended: Callable[[], bool]
    """Whether it has ended since."""
    waiting_at: Callable[[], tuple[str, ...]] = _nowhere
    """The lines where it waits now, innermost last; empty where that has no meaning."""
    creation: Creation | None = None
    """Where it was created; None if that was not recorded."""
    owner: object = None
    """The owner, from the creation if that was recorded; None if it has none."""
    loop: AbstractEventLoop | None = None
    target: Any = None
    """The object itself, or a weak reference where a snapshot must not keep it alive."""
    task_to_cancel: Task[Any] | None = None
    """The task on asyncio's list whose cancellation ends it."""
    part_of: Callable[[], Hashable | None] = _of_nothing
    """The key of the object that this one ends with. Called only for candidates: it may search."""
    ends_by_itself: bool = False
    """Whether it is about to end without anybody's help."""
    library: str = ""
    """The library that keeps it on purpose; see `known_libraries`."""
    size: int = 1
    """How much it counts: the tasks in a container, the bytes that a line has added."""

    def __post_init__(self) -> None:
        if self.creation is not None:
            self.owner = self.creation.owner

    def __repr__(self) -> str:
        return f"<{self.code} {self.what}>"
