"""One action of a scripted child that the program has not seen yet.

It is both the action and its arrival: the two are indistinguishable until it has arrived, or until a
signal makes it a choice how far the child had got.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import TYPE_CHECKING

from handfast._explore.loop.external_events import Channel, Event

if TYPE_CHECKING:
    from handfast._explore.simulation.processes.pipes import Pipe
    from handfast._explore.simulation.processes.scripted_process import ScriptedProcess


@dataclass(slots=True, eq=False)
class Pending:
    """`act` carries it out. `step` is the step of the child, `last` marks the actions of its end."""

    owner: ScriptedProcess
    channel: Channel
    act: Callable[[], object]
    label: str
    _: KW_ONLY
    pipe: Pipe | None = None
    undo: Callable[[], object] | None = None
    after: InitVar[float] = 0.0
    # Not an action but the time at which the child continues.
    wakes: bool = False
    last: bool = False
    # It arrives independently: the actions before it need not have arrived.
    alone: bool = False
    at: float = field(init=False)
    step: int = field(init=False)
    _event: Event | None = field(default=None, init=False)

    def __post_init__(self, after: float) -> None:
        self.at = self.owner.loop.time() + after
        self.step = self.owner.steps
        self.owner.pending.append(self)
        if self.pipe is not None:
            self.pipe.waiting.append(self)

    def post(self) -> None:
        """Let it arrive, unless its pipe has no reader."""
        if self._event is None and (self.pipe is None or self.pipe.callback is not None):
            self._event = self.channel.post(
                self._arrive,
                label=self.label,
                after=max(0.0, self.at - self.owner.loop.time()),
                faults=None if self.last else {"kill": self._kill},
            )

    def owe(self) -> None:
        """Let it arrive in the current poll, in any order with others, because a later action has
        arrived. If its pipe has no reader, it takes effect at once."""
        if self._event is None:
            self.make()
        else:
            self._event.owe()

    def unpost(self) -> None:
        if self._event is not None:
            self.channel.drop(self._event)
            self._event = None

    def make(self) -> None:
        """Carry it out now."""
        self._forget()
        self.act()

    def drop(self) -> None:
        """Undo it: the child did not get that far."""
        self._forget()
        if self.undo is not None:
            self.undo()

    def lose(self) -> None:
        """Forget it: the program closed the pipe, so whether it happened makes no difference."""
        self._forget()

    def settle(self) -> None:
        """Note that it has happened, although it has not arrived."""
        self.owner.settled(self)

    def _forget(self) -> None:
        self.owner.pending.remove(self)
        self.unpost()
        if self.pipe is not None:
            self.pipe.waiting.remove(self)

    def _arrive(self) -> None:
        self._event = None
        self.owner.arrived(self)

    def _kill(self) -> None:
        self._event = None
        self.owner.killed(self)
