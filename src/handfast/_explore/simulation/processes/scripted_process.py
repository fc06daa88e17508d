"""A scripted process: carries out its script in virtual time until it has to wait.

The program sees its actions in the order in which a kernel would show them: bytes of one pipe in
order, everything before a visible action is visible too, EOF and exit independent of each other.
"""

from __future__ import annotations

import functools
import math
import signal
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from handfast._explore.simulation.processes import script as steps
from handfast._explore.simulation.processes.pending import Pending
from handfast._explore.simulation.processes.pipes import InputPipe, OutputPipe, Pipe

if TYPE_CHECKING:
    from handfast._explore.loop.external_events import Channel
    from handfast._explore.simulation.processes.process_table import ProcessTable


# Signals that do nothing without a handler. Stopping a process is not simulated.
_HARMLESS = frozenset({
    0, signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGURG,
    signal.SIGWINCH,
})  # fmt: skip

Output = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class _Writes:
    """A piece of output that is written in one call, as far as the pipe has space."""

    pipe: Output
    data: bytes


class ScriptedProcess:
    """A child, or a grandchild, which has no `exit_channel`."""

    def __init__(
        self,
        table: ProcessTable,
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
        # It has begun to end: a signal no longer changes its status.
        self.ending = False
        self.pending: list[Pending] = []
        self.steps = 0
        self._todo: deque[steps.Step | _Writes] = deque()
        self._finished = False
        self._ignored: set[int] = set()
        self._handlers: dict[int, tuple[steps.Step, ...]] = {}
        self._input = bytearray()
        self._waits_for: Pipe | None = None
        # The next visible action takes effect at once: its time has just been chosen.
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

    def begin(self, script: Iterable[steps.Step]) -> None:
        self._todo = deque(script)
        self._run()

    def resume(self, pipe: Pipe) -> None:
        """Continue if the process waits for this pipe."""
        if self._waits_for is pipe:
            self._waits_for = None
            self._run()

    def _wake(self) -> None:
        self._at_once = True
        self._run()
        self._at_once = False

    def _run(self) -> None:
        """Carry out steps until one has to wait."""
        while not self._finished:
            step: Any = self._todo.popleft() if self._todo else steps.Exits()
            self.steps += 1
            if not _ACTIONS[type(step)](self, step):
                return

    def _say(self, step: steps.Says | steps.Errs) -> bool:
        pipe: Output = "stdout" if isinstance(step, steps.Says) else "stderr"
        if step.data and getattr(self, pipe) is not None:
            pieces = [step.data] if step.whole else self._cut(step.data)
            self._todo.extendleft(_Writes(pipe, piece) for piece in reversed(pieces))
        return True

    def _cut(self, data: bytes) -> list[bytes]:
        # The first and the last byte alone: more cuts would multiply schedules and find little more.
        places = sorted({1, len(data) - 1} - {0, len(data)})
        if len(data) < 2 or not places:
            return [data]
        answer = self.loop.choose(
            "cut",
            len(places) + 1,
            lambda: ("whole", *(f"cut{at}" for at in places)),
            lambda n: (
                f"{len(data)} bytes of {self.name} arrive in two pieces, cut at {places[n - 1]}"
            ),
        )
        return [data[: places[answer - 1]], data[places[answer - 1] :]] if answer else [data]

    def _write(self, step: _Writes) -> bool:
        pipe: OutputPipe = getattr(self, step.pipe)
        if pipe.closed:
            # The default action of SIGPIPE, which a script cannot handle.
            self._finish(-signal.SIGPIPE)
            return False
        free = pipe.free()
        if free <= 0:
            self._todo.appendleft(step)
            pipe.blocked.append(self)
            return self._block(pipe)
        data, rest = step.data[:free], step.data[free:]
        if rest:
            self._todo.appendleft(_Writes(step.pipe, rest))
        # Reserved at once: bytes on their way take space in the pipe too.
        pipe.promised += len(data)
        self._do(
            self._channel(pipe.name),
            lambda: pipe.arrive(data),
            f"{len(data)} bytes from {step.pipe} of {self.name}",
            pipe=pipe,
            undo=lambda: setattr(pipe, "promised", pipe.promised - len(data)),
        )
        return True

    def _wait(self, step: steps.Waits) -> bool:
        if step.seconds != math.inf:
            self._idle()
            self._wake_after(step.seconds)
            return False
        return self._block(None)

    def _wake_after(self, seconds: float) -> None:
        label = f"{self.name} continues"
        Pending(self, self._channel("life"), self._wake, label, after=seconds, wakes=True).post()

    def _block(self, pipe: Pipe | None) -> bool:
        self._waits_for = pipe
        self._idle()
        return False

    def _idle(self) -> None:
        """Offer the fault `kill` where the process waits and no other event is on its way."""
        if "kill" in self.loop.settings.faults:
            label = f"{self.name} still waits"
            Pending(self, self._channel("life"), _nothing, label, wakes=True).post()

    def _hear(self, step: steps.Hears) -> bool:
        line = self._line()
        if line is None:
            self._todo.appendleft(step)
            return self._block(self.stdin)
        if not line:
            return True
        if step.lines != 1:
            self._todo.appendleft(steps.Hears(step.answer, step.lines and step.lines - 1))
        return self._answer(step, line)

    def _hear_all(self, step: steps.HearsAll) -> bool:
        if not self._read_input():
            self._todo.appendleft(step)
            return self._block(self.stdin)
        heard = bytes(self._input)
        self._input.clear()
        return self._answer(step, heard)

    def _answer(self, step: steps.Hears | steps.HearsAll, heard: bytes) -> bool:
        reply = step.answer(heard) if step.answer is not None else b""
        if reply:
            self._todo.appendleft(steps.Says(reply))
        return True

    def _line(self) -> bytes | None:
        """The next line, empty at the end of the input; None if it has not arrived."""
        ended = self._read_input()
        at = self._input.find(b"\n")
        if at < 0 and not ended:
            return None
        end = at + 1 if at >= 0 else len(self._input)
        line = bytes(self._input[:end])
        del self._input[:end]
        return line

    def _read_input(self) -> bool:
        """Read what is in stdin; True at the end of the input."""
        if self.stdin is None:
            return True
        data = self.stdin.take()
        if data:
            self._at_once = False  # there is space now, which is visible
        self._input += data
        return self.stdin.closed

    def _close(self, step: steps.Closes) -> bool:
        pipe: Pipe | None = getattr(self, step.pipe)
        if isinstance(pipe, InputPipe):
            self._close_input(pipe, last=False)
        elif isinstance(pipe, OutputPipe) and step.pipe != "stdin":
            self._close_output(pipe, [step.pipe], last=False)
        return True

    def _ignore(self, step: steps.Ignores) -> bool:
        return self._invisibly(step, lambda: self._ignored.add(step.signal))

    def _handle(self, step: steps.On) -> bool:
        return self._invisibly(step, lambda: self._handlers.update({step.signal: step.steps}))

    def _fork(self, step: steps.Forks) -> bool:
        def fork() -> None:
            self._at_once = False  # from here on there are two processes
            self.table.fork(self, step.steps, leaves=step.leaves)

        return self._invisibly(step, fork)

    def _invisibly(self, step: steps.Step, act: Callable[[], object]) -> bool:
        """Carry out a step that the program cannot see, after all visible ones before it."""
        if self.pending:
            self._todo.appendleft(step)
            self._wake_after(0.0)
            return False
        act()
        return True

    def _exit(self, step: steps.Exits) -> bool:
        self._finish(step.status)
        return False

    def _die(self, step: steps.Dies) -> bool:
        self._finish(-step.signal)
        return False

    def _fail(self, step: steps.Fails) -> bool:
        raise TypeError(f"the script of {self.name}: Fails must be its only step")

    # --- visible actions ---------------------------------------------------------------------

    def _do(
        self,
        channel: Channel,
        act: Callable[[], object],
        label: str,
        *,
        last: bool = False,
        **options: Any,
    ) -> None:
        """Add an action that the program can see; when it arrives is a choice."""
        pending = Pending(self, channel, act, label, last=last, **options)
        if self._at_once and not last:
            self._at_once = False
            pending.make()
        else:
            pending.post()

    def _close_input(self, pipe: InputPipe, *, last: bool) -> None:
        self.stdin = None
        if pipe.closed:
            return
        label = f"stdin of {self.name} is closed"
        undo = functools.partial(setattr, self, "stdin", pipe)
        self._do(self._channel(pipe.name), pipe.break_off, label, pipe=pipe, undo=undo, last=last)

    def _close_output(self, pipe: OutputPipe, names: list[Output], *, last: bool) -> None:
        for name in names:
            setattr(self, name, None)
        if pipe in (self.stdout, self.stderr):
            return  # still open under its other name
        pipe.writers.pop(self, None)
        if pipe.writers or pipe.closed:
            return  # another process has it open, or the program closed it

        def undo() -> None:
            pipe.writers[self] = None
            for name in names:
                setattr(self, name, pipe)

        label = f"EOF on {pipe.name}"
        self._do(self._channel(pipe.name), pipe.end, label, pipe=pipe, undo=undo, last=last)

    def arrived(self, pending: Pending) -> None:
        """Carry out an action that arrives, and let everything before it arrive in the same poll.
        Events of several descriptors in one poll have any order (`epoll` promises none)."""
        earlier = self._before(pending)
        if pending.last:
            self.ending = True
        if pending.wakes:
            self._make(earlier)
            pending.make()
        else:
            pending.make()
            for each in earlier:
                each.owe()

    def _before(self, pending: Pending) -> list[Pending]:
        """The actions that must have happened before this one. The kernel closes the pipes of a
        process that ends in any order (Linux: often the last one first), so none of them is before
        another; the exit is visible only after all of them."""
        if pending.alone:
            return []
        earlier = self.pending[: self.pending.index(pending)]
        if pending.last and pending.pipe is not None:
            return [each for each in earlier if not each.last]
        return earlier

    def _make(self, earlier: list[Pending]) -> None:
        for pending in earlier:
            pending.make()

    def settled(self, pending: Pending) -> None:
        """Note that an action has happened before it arrives."""
        # The end was seen through a side effect, so a later signal cannot change the status.
        self.ending = self.ending or pending.last

    # --- the end -----------------------------------------------------------------------------

    def signal(self, number: int) -> None:
        """Handle a signal from the program. How far the child had got by then is a choice."""
        if self.ending or number in _HARMLESS or (number in self._ignored and number != 9):
            return
        self._cut_short(self._made())
        if self.ending:
            return
        self._waits_for = None
        # SIGKILL cannot be handled or ignored.
        if number in self._handlers and number != 9:
            self._finished = False
            self._todo = deque(self._handlers[number])
            self._run()
        else:
            self._finish(-number)
            self.ending = True

    def _made(self) -> int:
        """How many of the steps that are not visible yet it has carried out."""
        steps = self._unseen()
        if not steps:
            return 0
        return int(
            self.loop.choose(
                "made",
                len(steps) + 1,
                lambda: tuple(f"{self.name}{n}" for n in range(len(steps) + 1)),
                lambda n: f"{self.name} had done {n} more steps when the signal arrived",
            )
        )

    def _unseen(self) -> list[int]:
        return list(dict.fromkeys(p.step for p in self.pending if not p.wakes))

    def _cut_short(self, made: int) -> None:
        """Undo the steps after the first `made` ones that are not visible yet."""
        kept = self._unseen()[:made]
        # In reverse, because undoing an action restores the state before it.
        for pending in reversed(self.pending.copy()):
            if pending.wakes or pending.step not in kept:
                pending.drop()
            elif pending.last:
                self.ending = True

    def killed(self, pending: Pending) -> None:
        """Fault: killed from outside instead of this action. Not if it has ended meanwhile: a
        thread may report the exit before the last output was read."""
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
            # Before Python 3.12 a thread waits for the exit, independently of the pipes.
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
    """The action of an event without an effect."""


_ACTIONS: dict[type, Callable[[ScriptedProcess, Any], bool]] = {
    steps.Says: ScriptedProcess._say,
    steps.Errs: ScriptedProcess._say,
    _Writes: ScriptedProcess._write,
    steps.Waits: ScriptedProcess._wait,
    steps.Hears: ScriptedProcess._hear,
    steps.HearsAll: ScriptedProcess._hear_all,
    steps.Closes: ScriptedProcess._close,
    steps.Exits: ScriptedProcess._exit,
    steps.Dies: ScriptedProcess._die,
    steps.Ignores: ScriptedProcess._ignore,
    steps.On: ScriptedProcess._handle,
    steps.Forks: ScriptedProcess._fork,
    steps.Fails: ScriptedProcess._fail,
}
