"""A scripted process: goes through its script in virtual time, as far as nothing holds it up.

What it does is seen by the program in the order in which a kernel would show it: bytes of one pipe
in order, whatever was done before something seen is there too, EOF and exit each on its own way.
"""

from __future__ import annotations

import math
import signal
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from holdfast.explore.twins.children.pending import Pending
from holdfast.explore.twins.children.pipes import InputPipe, OutputPipe, Pipe
from holdfast.explore.twins.children.steps import (
    Closes,
    Dies,
    Errs,
    Exits,
    Fails,
    Forks,
    Hears,
    HearsAll,
    Ignores,
    On,
    Says,
    Step,
    Waits,
)

if TYPE_CHECKING:
    from holdfast.explore.twins.children.table import Table
    from holdfast.explore.world import Channel

__all__ = ["ScriptedProcess"]

# Signals that do nothing unless somebody asked for them. What stops a process is not played.
_HARMLESS = frozenset({
    0,
    signal.SIGCHLD,
    signal.SIGCONT,
    signal.SIGSTOP,
    signal.SIGTSTP,
    signal.SIGURG,
    signal.SIGWINCH,
})  # fmt: skip

Output = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class _Writes:
    """A piece of output that is written in one go, as far as there is room."""

    pipe: Output
    data: bytes


class ScriptedProcess:
    """A child, or a grandchild (`reports` is false: nobody waits for its exit)."""

    def __init__(
        self,
        table: Table,
        name: str,
        pid: int,
        group: int,
        *,
        stdin: InputPipe | None = None,
        stdout: OutputPipe | None = None,
        stderr: OutputPipe | None = None,
        exit_channel: Channel | None = None,
    ) -> None:
        self.table = table
        self.loop: Any = table.loop
        self.name = name
        self.pid = pid
        self.group = group
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.status: int | None = None
        # It has begun to end: no signal changes how.
        self.ending = False
        self.pending: list[Pending] = []
        self.steps = 0
        self._todo: deque[Step | _Writes] = deque()
        self._finished = False
        self._ignored: set[int] = set()
        self._handlers: dict[int, tuple[Step, ...]] = {}
        self._heard = bytearray()
        self._waits_for: Pipe | None = None
        # The next visible step is made at once: the moment for it has been chosen just now.
        self._at_once = False
        self._channels: dict[str, Channel] = {}
        self._exit_channel = exit_channel
        if stdin is not None:
            stdin.reader = self
        for pipe in self._outputs():
            pipe.writers[self] = None

    def _outputs(self) -> list[OutputPipe]:
        return [pipe for pipe in dict.fromkeys((self.stdout, self.stderr)) if pipe is not None]

    def _channel(self, name: str) -> Channel:
        if name not in self._channels:
            self._channels[name] = self.loop.channel(f"{name} by {self.pid}")
        return self._channels[name]

    # --- the script --------------------------------------------------------------------------

    def begin(self, script: Iterable[Step]) -> None:
        self._todo = deque(script)
        self._run()

    def resume(self, pipe: Pipe) -> None:
        """Something has changed in this pipe."""
        if self._waits_for is pipe:
            self._waits_for = None
            self._run()

    def _wake(self) -> None:
        self._at_once = True
        self._run()
        self._at_once = False

    def _run(self) -> None:
        """On, until something has to be waited for."""
        while not self._finished:
            step: Any = self._todo.popleft() if self._todo else Exits()
            self.steps += 1
            if not _DEEDS[type(step)](self, step):
                return

    def _say(self, step: Says | Errs) -> bool:
        pipe: Output = "stdout" if isinstance(step, Says) else "stderr"
        if step.data and getattr(self, pipe) is not None:
            pieces = [step.data] if step.whole else self._cut(step.data)
            self._todo.extendleft(_Writes(pipe, piece) for piece in reversed(pieces))
        return True

    def _cut(self, data: bytes) -> list[bytes]:
        places = sorted({1, len(data) - 1} - {0, len(data)})
        if len(data) < 2 or not places:
            return [data]
        answer = self.loop.choose(
            "cut",
            len(places) + 1,
            lambda: ("whole", *(f"cut{at}" for at in places)),
            lambda n: (
                f"{len(data)} bytes of {self.name} come in two pieces, cut at {places[n - 1]}"
            ),
        )
        return [data[: places[answer - 1]], data[places[answer - 1] :]] if answer else [data]

    def _write(self, step: _Writes) -> bool:
        pipe: OutputPipe = getattr(self, step.pipe)
        if pipe.closed:
            self._finish(-signal.SIGPIPE)
            return False
        room = pipe.room()
        if room <= 0:
            self._todo.appendleft(step)
            pipe.blocked.append(self)
            return self._block(pipe)
        data, rest = step.data[:room], step.data[room:]
        if rest:
            self._todo.appendleft(_Writes(step.pipe, rest))
        pipe.promised += len(data)
        self._do(
            self._channel(pipe.name),
            lambda: pipe.arrive(data),
            f"{len(data)} bytes from {step.pipe} of {self.name}",
            pipe=pipe,
            undo=lambda: setattr(pipe, "promised", pipe.promised - len(data)),
        )
        return True

    def _wait(self, step: Waits) -> bool:
        if step.seconds != math.inf:
            self._idle()
            self._wake_after(step.seconds)
            return False
        return self._block(None)

    def _wake_after(self, seconds: float) -> None:
        wake = Pending(
            self,
            self._channel("life"),
            self._wake,
            f"{self.name} goes on",
            after=seconds,
            wakes=True,
        )
        self.pending.append(wake)
        wake.post()

    def _block(self, pipe: Pipe | None) -> bool:
        self._waits_for = pipe
        self._idle()
        return False

    def _idle(self) -> None:
        """Where it waits nothing happens by itself, and yet it can be killed there."""
        if "kill" in self.loop.settings.faults:
            idle = Pending(
                self, self._channel("life"), _nothing, f"{self.name} still waits", wakes=True
            )
            self.pending.append(idle)
            idle.post()

    def _hear(self, step: Hears) -> bool:
        line = self._line()
        if line is None:
            self._todo.appendleft(step)
            return self._block(self.stdin)
        if not line:
            return True
        if step.lines != 1:
            self._todo.appendleft(Hears(step.answer, step.lines and step.lines - 1))
        return self._answer(step, line)

    def _hear_all(self, step: HearsAll) -> bool:
        if not self._listen():
            self._todo.appendleft(step)
            return self._block(self.stdin)
        heard = bytes(self._heard)
        self._heard.clear()
        return self._answer(step, heard)

    def _answer(self, step: Hears | HearsAll, heard: bytes) -> bool:
        said = step.answer(heard) if step.answer is not None else b""
        if said:
            self._todo.appendleft(Says(said))
        return True

    def _line(self) -> bytes | None:
        """The next line, empty at the end of the input; None if it is still to come."""
        over = self._listen()
        at = self._heard.find(b"\n")
        if at < 0 and not over:
            return None
        end = at + 1 if at >= 0 else len(self._heard)
        line = bytes(self._heard[:end])
        del self._heard[:end]
        return line

    def _listen(self) -> bool:
        """Take in what there is; True if no more can come."""
        if self.stdin is None:
            return True
        data = self.stdin.take()
        if data:
            self._at_once = False  # there is room now, and that can be seen
        self._heard += data
        return self.stdin.closed

    def _close(self, step: Closes) -> bool:
        pipe: Pipe | None = getattr(self, step.pipe)
        if isinstance(pipe, InputPipe):
            self._close_input(pipe, last=False)
        elif isinstance(pipe, OutputPipe) and step.pipe != "stdin":
            self._close_output(pipe, [step.pipe], last=False)
        return True

    def _ignore(self, step: Ignores) -> bool:
        return self._quietly(step, lambda: self._ignored.add(step.signal))

    def _handle(self, step: On) -> bool:
        return self._quietly(step, lambda: self._handlers.update({step.signal: step.steps}))

    def _fork(self, step: Forks) -> bool:
        def fork() -> None:
            self._at_once = False  # from here on there are two
            self.table.fork(self, step.steps, leaves=step.leaves)

        return self._quietly(step, fork)

    def _quietly(self, step: Step, act: Callable[[], object]) -> bool:
        """A step that the program cannot see: it comes after those that it can, all the same."""
        if self.pending:
            self._todo.appendleft(step)
            self._wake_after(0.0)
            return False
        act()
        return True

    def _exit(self, step: Exits) -> bool:
        self._finish(step.status)
        return False

    def _die(self, step: Dies) -> bool:
        self._finish(-step.signal)
        return False

    def _fail(self, step: Fails) -> bool:
        raise TypeError(f"the script of {self.name} has started; Fails must be its only step")

    # --- what the program sees ---------------------------------------------------------------

    def _do(
        self,
        channel: Channel,
        act: Callable[[], object],
        label: str,
        *,
        pipe: Pipe | None = None,
        undo: Callable[[], object] | None = None,
        last: bool = False,
        alone: bool = False,
    ) -> None:
        """Something that the program can see: it arrives when it does."""
        pending = Pending(
            self, channel, act, label, pipe=pipe, undo=undo, last=last, alone=alone
        )  # fmt: skip
        self.pending.append(pending)
        if self._at_once and not last:
            self._at_once = False
            pending.make()
        else:
            pending.post()

    def _close_input(self, pipe: InputPipe, *, last: bool) -> None:
        self.stdin = None
        if pipe.closed:
            return
        self._do(
            self._channel(pipe.name),
            pipe.break_off,
            f"stdin of {self.name} is closed",
            pipe=pipe,
            undo=lambda: setattr(self, "stdin", pipe),
            last=last,
        )

    def _close_output(self, pipe: OutputPipe, names: list[Output], *, last: bool) -> None:
        for name in names:
            setattr(self, name, None)
        if pipe in (self.stdout, self.stderr):
            return  # its other name still stands for it
        pipe.writers.pop(self, None)
        if pipe.writers or pipe.closed:
            return  # somebody else holds it, or nobody could see it

        def undo() -> None:
            pipe.writers[self] = None
            for name in names:
                setattr(self, name, pipe)

        self._do(
            self._channel(pipe.name),
            pipe.end,
            f"EOF on {pipe.name}",
            pipe=pipe,
            undo=undo,
            last=last,
        )

    def arrived(self, pending: Pending) -> None:
        """This has been seen, so everything before it can be seen in the same poll. What comes
        from different pipes in one poll comes in any order, so this one goes first."""
        earlier = [] if pending.alone else self.pending[: self.pending.index(pending)]
        if pending.last:
            self.ending = True
        if pending.wakes:
            self._make(earlier)
            pending.make()
        else:
            pending.make()
            self._make(earlier)

    def _make(self, earlier: list[Pending]) -> None:
        for pending in earlier:
            pending.make()

    def settled(self, pending: Pending) -> None:
        """This has happened, and can be seen by other ways than its own."""
        self.ending = self.ending or pending.last

    # --- the end -----------------------------------------------------------------------------

    def signal(self, number: int) -> None:
        """A signal of the program's. How far the child had come by then is a choice."""
        if self.ending or number in _HARMLESS or (number in self._ignored and number != 9):
            return
        self._cut_short(self._made())
        if self.ending:
            return
        self._waits_for = None
        if number in self._handlers and number != 9:
            self._finished = False
            self._todo = deque(self._handlers[number])
            self._run()
        else:
            self._finish(-number)
            self.ending = True

    def _made(self) -> int:
        """How many of the steps that nobody has seen yet it has made."""
        steps = self._unseen()
        if not steps:
            return 0
        return int(
            self.loop.choose(
                "made",
                len(steps) + 1,
                lambda: tuple(f"{self.name}{n}" for n in range(len(steps) + 1)),
                lambda n: f"{self.name} had made {n} more steps when the signal came",
            )
        )

    def _unseen(self) -> list[int]:
        return list(dict.fromkeys(p.step for p in self.pending if not p.wakes))

    def _cut_short(self, made: int) -> None:
        """What it has not made will not be."""
        kept = self._unseen()[:made]
        for pending in reversed(self.pending.copy()):
            if pending.wakes or pending.step not in kept:
                pending.drop()
            elif pending.last:
                self.ending = True

    def struck(self, pending: Pending) -> None:
        """The fault: killed by somebody else, instead of this. Unless it has ended meanwhile: a
        thread may have reported that before its last words were read."""
        if self.ending:
            self.arrived(pending)
            return
        self._make(self.pending[: self.pending.index(pending)])
        self._cut_short(0)
        self._finish(-signal.SIGKILL)
        self.ending = True

    def _finish(self, status: int) -> None:
        self.steps += 1
        self._finished = True
        self._todo.clear()
        self.status = status
        held = self.stdin, self.stdout, self.stderr

        def undo() -> None:
            self.stdin, self.stdout, self.stderr = held
            for pipe in self._outputs():
                pipe.writers[self] = None

        if self.stdin is not None:
            self._close_input(self.stdin, last=True)
        for pipe in self._outputs():
            names: list[Output] = ["stdout", "stderr"]
            self._close_output(pipe, [n for n in names if getattr(self, n) is pipe], last=True)
        if self._exit_channel is not None:
            # A thread waits for the exit before Python 3.12: it looks at no pipe.
            alone = self._exit_channel.between
            label = f"exit of {self.name}"
            self._do(self._exit_channel, self._report, label, undo=undo, last=True, alone=alone)
        else:
            self._do(self._channel("life"), _nothing, f"{self.name} ends", undo=undo, last=True)

    def _report(self) -> None:
        self.table.exited(self)

    @property
    def exits(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._finished


def _nothing() -> None:
    """For what happens without a trace."""


_DEEDS: dict[type, Callable[[ScriptedProcess, Any], bool]] = {
    Says: ScriptedProcess._say,
    Errs: ScriptedProcess._say,
    _Writes: ScriptedProcess._write,
    Waits: ScriptedProcess._wait,
    Hears: ScriptedProcess._hear,
    HearsAll: ScriptedProcess._hear_all,
    Closes: ScriptedProcess._close,
    Exits: ScriptedProcess._exit,
    Dies: ScriptedProcess._die,
    Ignores: ScriptedProcess._ignore,
    On: ScriptedProcess._handle,
    Forks: ScriptedProcess._fork,
    Fails: ScriptedProcess._fail,
}
