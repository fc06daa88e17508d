"""What `submit` returns: a future that is always answered, once, whatever becomes of the loop.

Not a thing of the loop's: any thread may wait for it, look at it or cancel it. How its call is
started and tracked stands in `submission`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TypeVar

from holdfast.runtime.errors import LoopStopped
from holdfast.runtime.roster import Roster
from holdfast.runtime.threads import HEARTBEAT

__all__ = ["Answer", "stopped"]

T = TypeVar("T")

# The states of a concurrent future, by the names that its own module gives them.
_PENDING = "PENDING"
_CANCELLED = "CANCELLED"
_FINISHED = "FINISHED"

# What a stock future makes when it is born: among them a condition with a lock and a queue.
_BORN_WITH = frozenset(vars(Future()))

# Held for a few instructions, and never while another lock is being taken. Re-entrant, because
# the garbage collector may drop a loop, and so refuse answers, in the middle of them.
_settling = threading.RLock()


class Answer(Future[T]):
    """A future that does not wait for a loop that has stopped.

    Whoever waits in `result` or `exception` finds out by himself. Those who only watch (`wait`,
    `as_completed`, a callback) hear of a loop that was stopped in the middle of a call when
    its scope is closed or dropped.

    Most answers have come by the time somebody asks. So the condition, the callbacks and the
    waiters of a stock future, which cost more than the task behind it, are made only when
    they are first looked at. From then on the answer is a stock future in all respects.
    """

    _exception = None
    _watched = False

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._state = _PENDING
        self._result = None

    def __getattr__(self, name: str) -> object:
        if name not in _BORN_WITH:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        stock = vars(Future())
        own = vars(self)
        with _settling:
            self._watched = True
            for key, value in stock.items():
                own.setdefault(key, value)  # another thread may have been here
        return own[name]

    # --- for those who wait ------------------------------------------------------------------

    def result(self, timeout: float | None = None) -> T:
        try:
            if self._state != _FINISHED:
                self._wait(timeout)
            elif self._exception is None:
                return self._result  # type: ignore[return-value]
            return super().result(0)
        finally:
            del self  # which the error, through its traceback, would refer to

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if self._state != _FINISHED:
            self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        """Until it is answered or the time is up; if the loop stops, that is the answer."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._condition:
            while not self.done():
                left = HEARTBEAT if until is None else min(HEARTBEAT, until - time.monotonic())
                if left <= 0:
                    return  # the call that follows raises the TimeoutError
                self._require_foreign_thread()
                if not self._condition.wait(left) and not self._roster.is_running():
                    break
            else:
                return
        self.give_up()

    def give_up(self) -> None:
        """The loop does not run. If it ever goes on, what it has been told to do is not done."""
        if self.refuse(stopped(self._roster)):
            self._cancel_task()

    def _require_foreign_thread(self) -> None:
        loop = self._roster.loop
        if loop is not None and loop is asyncio._get_running_loop():
            raise RuntimeError(
                f"waiting here would block the very loop of {self._roster.describe()} that has "
                "to give the answer; on this thread use: await asyncio.wrap_future(...)"
            )

    def cancel(self) -> bool:
        """Cancel the task behind it, too."""
        if self._state == _FINISHED or not self.drop():
            return False
        self._cancel_task()
        return True

    def _cancel_task(self) -> None:
        roster = self._roster
        if roster.loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                roster.loop.call_soon_threadsafe(_cancel, roster, self)

    # --- for those who answer: whoever comes second changes nothing -------------------------------

    def resolve(self, value: T) -> None:
        """Answer with a value."""
        with _settling:
            if not self._watched:
                if self._state == _PENDING:
                    self._result = value
                    self._state = _FINISHED
                return
        with suppress(InvalidStateError):
            self.set_result(value)

    def refuse(self, error: BaseException) -> bool:
        """Answer with an error. False if there is another answer."""
        try:
            self.set_exception(error)
        except InvalidStateError:
            return False
        return True

    def drop(self) -> bool:
        """Answer that it was cancelled. False if there is another answer."""
        if not super().cancel():
            return False
        with self._condition:
            # Only this wakes concurrent.futures.wait and as_completed.
            if self._state == _CANCELLED:
                self.set_running_or_notify_cancel()
        return True

    @property
    def open(self) -> bool:
        """Nobody has answered yet. As of now: other threads may be at it."""
        return self._state == _PENDING


def _cancel(roster: Roster, answer: Answer[T]) -> None:
    """On the loop: end the task whose answer has been given without it."""
    task = roster.live.get(answer)
    if task is not None and answer not in roster.asked:
        roster.asked[answer] = roster.clock()
        task.cancel()


def stopped(roster: Roster) -> LoopStopped:
    """The answer that a loop which does not run gives."""
    return LoopStopped(
        f"the event loop of {roster.describe()} has stopped, so nobody can run this; submit "
        "while the loop runs, and close the scope before the loop"
    )
