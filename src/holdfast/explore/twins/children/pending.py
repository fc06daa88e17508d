"""One thing that a scripted child has done and that the program has not seen yet.

It stands for both, the deed and its arrival: nobody can tell them apart until it has arrived, or a
signal asks how far the child had come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.explore.world import Channel, Event

if TYPE_CHECKING:
    from holdfast.explore.twins.children.pipes import Pipe
    from holdfast.explore.twins.children.process import ScriptedProcess

__all__ = ["Pending"]


class Pending:
    """`act` makes it true. `step` counts the steps of the child, `last` marks those of its end."""

    __slots__ = (
        "_channel",
        "_event",
        "_pipe",
        "act",
        "alone",
        "at",
        "label",
        "last",
        "owner",
        "step",
        "undo",
        "wakes",
    )

    def __init__(
        self,
        owner: ScriptedProcess,
        channel: Channel,
        act: Callable[[], object],
        label: str,
        *,
        pipe: Pipe | None = None,
        undo: Callable[[], object] | None = None,
        after: float = 0.0,
        wakes: bool = False,
        last: bool = False,
        alone: bool = False,
    ) -> None:
        self.owner = owner
        self.act = act
        self.label = label
        self.undo = undo
        self.at = owner.loop.time() + after
        self.step = owner.steps
        # Not a deed but the moment at which the child goes on.
        self.wakes = wakes
        self.last = last
        # It comes on a way of its own, and says nothing about what was before it.
        self.alone = alone
        self._channel = channel
        self._event: Event | None = None
        self._pipe = pipe
        if pipe is not None:
            pipe.waiting.append(self)

    def post(self) -> None:
        """Let it come, if there is anybody who looks."""
        if self._event is None and (self._pipe is None or self._pipe.told is not None):
            self._event = self._channel.post(
                self._arrive,
                label=self.label,
                after=max(0.0, self.at - self.owner.loop.time()),
                faults=None if self.last else {"kill": self._kill},
            )

    def unpost(self) -> None:
        if self._event is not None:
            self._channel.drop(self._event)
            self._event = None

    def make(self) -> None:
        """It is true now."""
        self._forget()
        self.act()

    def drop(self) -> None:
        """It never came to it."""
        self._forget()
        if self.undo is not None:
            self.undo()

    def lose(self) -> None:
        """It has happened, or not: nobody will ever know."""
        self._forget()

    def settle(self) -> None:
        """It has happened, though it has not arrived: nothing can prevent it any more."""
        self.owner.settled(self)

    def _forget(self) -> None:
        self.owner.pending.remove(self)
        self.unpost()
        if self._pipe is not None:
            self._pipe.waiting.remove(self)

    def _arrive(self) -> None:
        self._event = None
        self.owner.arrived(self)

    def _kill(self) -> None:
        self._event = None
        self.owner.struck(self)
