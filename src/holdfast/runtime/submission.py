"""Work that comes in from other threads: an inbox that the loop empties in batches.

Waking a loop costs a system call, so it is woken once for all that has piled up. The promise:
every submitter gets an answer, whatever becomes of the scope or of the loop.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, CancelledError, Task
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from types import FrameType
from typing import Any, TypeAlias

from holdfast.origin import Origin, intern_origin
from holdfast.runtime.answer import Answer, stopped
from holdfast.runtime.errors import ScopeClosed
from holdfast.runtime.roster import Roster, name_of
from holdfast.runtime.tracking import PAUSE

__all__ = ["Inbox"]

AsyncFunction: TypeAlias = Callable[..., Awaitable[Any]]
Call: TypeAlias = tuple[
    Answer[Any], AsyncFunction, tuple[Any, ...], Mapping[str, Any] | None, Origin, Context
]

# So many calls are started in one turn of the loop. More would keep its other tasks waiting.
_BATCH = 500


async def answered(
    roster: Roster,
    answer: Answer[Any],
    function: AsyncFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    origin: Origin,
    birth: float,
) -> None:
    """Track a call on the roster, as `tracking.tracked` does, and hand its ending over.

    An error belongs to the submitter, so it does not touch the siblings.
    """
    try:
        await PAUSE
        if roster.adopting:
            roster.adopt(answer)
        if not answer.open:  # cancelled, or told that the loop had stopped: it did not run
            return
        if roster.limit is not None:
            async with roster.turns:
                answer.resolve(await function(*args, **kwargs or {}))
        elif kwargs:
            answer.resolve(await function(*args, **kwargs))
        else:
            answer.resolve(await function(*args))
    except CancelledError:
        answer.drop()
        raise
    except Exception as error:
        answer.refuse(error)
    except GeneratorExit:
        # The loop has dropped the task; or a task factory has lost it when it was cancelled.
        if roster.is_running():
            answer.drop()
        else:
            answer.refuse(stopped(roster))
        raise
    except BaseException as error:
        answer.refuse(error)
        roster.fell(answer, origin)
        raise
    finally:
        roster.live.pop(answer, None)  # not there if it was dropped while it was being started
        if roster.asked:
            roster.asked.pop(answer, None)
        del answer  # or an error would refer to it, by its traceback and this frame
        if roster.watchers:
            roster.ended()


def _name(function: object) -> str:
    return name_of(function.func if isinstance(function, partial) else function)


def _refusal(roster: Roster, function: object) -> Exception:
    """Why this call is not taken. A coroutine in its place is closed."""
    if not callable(function):
        if asyncio.iscoroutine(function):
            function.close()
        return TypeError(f"submit() takes an async function and its arguments, not {function!r}")
    state = "closing" if roster.state.takes_work else roster.state.value
    return ScopeClosed(f"submit({_name(function)}) refused: {roster.describe()} is {state}")


class Inbox:
    """The calls that have come in and have not been started."""

    __slots__ = ("_calls", "_last_origin", "_roster", "_shut", "_woken")

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._calls: deque[Call] = deque()
        self._last_origin = roster.origin
        self._shut = False
        self._woken = False

    def submit(
        self,
        function: AsyncFunction,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        caller: FrameType,
    ) -> Answer[Any]:
        """From any thread; `caller` is the frame that gets the blame."""
        roster = self._roster
        loop = roster.loop
        if self._shut or not roster.state.takes_work or not callable(function):
            raise _refusal(roster, function)
        if loop is None or not loop.is_running():
            raise stopped(roster)
        origin = self._last_origin
        if origin.lasti != caller.f_lasti or origin.code is not caller.f_code:
            origin = self._last_origin = intern_origin(caller.f_code, caller.f_lasti)
        answer: Answer[Any] = Answer(roster)
        # First the call, then the look at the flag; `drain` does it the other way round. So
        # whoever sees the flag up knows that a drain is still to come.
        self._calls.append((answer, function, args, kwargs or None, origin, copy_context()))
        if not self._woken:
            self._wake(loop)
        # A drain refuses what comes for a closed scope. There is none on a loop that has
        # stopped since we looked.
        if not loop.is_running():
            self.refuse()
        return answer

    def _wake(self, loop: AbstractEventLoop) -> None:
        self._woken = True
        with suppress(RuntimeError):  # closed meanwhile: what was to come is refused
            loop.call_soon_threadsafe(_Wake(self))

    def drain(self) -> None:
        """Start what has come in, as much as one turn may take. On the loop."""
        self._woken = False
        calls = self._calls
        if not self._roster.state.takes_work:
            self.refuse()
        try:
            self._start(min(len(calls), _BATCH))
        finally:
            if calls and not self._woken:
                assert self._roster.loop is not None
                self._wake(self._roster.loop)

    def _start(self, count: int) -> None:
        roster = self._roster
        loop: Any = roster.loop
        plain = roster.stock and loop._task_factory is None
        birth = roster.clock()
        answer: Answer[Any] | None = None
        same: AsyncFunction | None = None
        name = ""
        try:
            for _ in range(count):
                if (call := self._take()) is None:
                    return
                answer, function, args, kwargs, origin, context = call
                if function is not same:
                    same, name = function, _name(function)
                wrapper = answered(roster, answer, function, args, kwargs, origin, birth)
                wrapper.send(None)  # primed: see tracking.primed
                # In the context of its submitter, and not of the one who has woken the loop.
                if plain:
                    roster.live[answer] = Task(wrapper, loop=loop, name=name, context=context)
                else:
                    context.run(roster.launch, answer, wrapper, name)
        except BaseException as error:
            # A task factory that failed, or a KeyboardInterrupt in the middle of this.
            if answer is not None and answer not in roster.live:
                answer.refuse(error)
            raise

    def shut(self) -> None:
        """Take nothing any more, before the scope itself gets to know. From any thread."""
        self._shut = True

    def refuse(self) -> None:
        """Answer all that has come in with a no. From any thread."""
        roster = self._roster
        while call := self._take():
            answer, function, *_ = call
            answer.refuse(_refusal(roster, function) if roster.is_running() else stopped(roster))

    def give_up(self) -> None:
        """The loop does not run, and the scope is closed: answer those, too, who are in the
        middle of their call. From any thread."""
        self.refuse()
        for key in list(self._roster.live):
            if isinstance(key, Answer):
                key.give_up()

    def _take(self) -> Call | None:
        try:
            return self._calls.popleft()
        except IndexError:  # another thread was faster
            return None


class _Wake:
    """A call of `drain`. A loop that closes drops it unrun, and the submitters get to know."""

    __slots__ = ("_inbox",)

    def __init__(self, inbox: Inbox) -> None:
        self._inbox: Inbox | None = inbox

    def __call__(self) -> None:
        inbox, self._inbox = self._inbox, None
        assert inbox is not None
        inbox.drain()

    def __del__(self) -> None:
        if self._inbox is not None:
            self._inbox.refuse()
