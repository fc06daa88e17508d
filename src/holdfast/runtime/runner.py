"""Run a program: like `asyncio.run`, but its end is bounded, and says what would have hung.

`asyncio.run` waits for ever for a task that swallows its cancel. Here the whole way down has
one deadline, and whoever is still there is named on standard error.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from holdfast.runtime.durations import seconds
from holdfast.runtime.patience import out_of_reach
from holdfast.runtime.pool import Pool
from holdfast.runtime.report import Straggler
from holdfast.runtime.roster import AnyTask
from holdfast.runtime.signals import HeldBack, Signals
from holdfast.runtime.winding import drive, wait_all, wind_down

__all__ = ["run"]

T = TypeVar("T")


def run(
    main: Coroutine[Any, Any, T] | Callable[[], Coroutine[Any, Any, T]],
    *,
    grace: float = 0.0,
    deadline: float = 10.0,
    debug: bool | None = None,
    loop_factory: Callable[[], AbstractEventLoop] | None = None,
) -> T:
    """Run `main` in a new event loop, and bring everything else in it to an end.

    When `main` has ended, other tasks have `grace` seconds to finish by themselves; then they
    are cancelled, once. All of that, with async generators and the default executor, takes
    `deadline` seconds at most.

    Ctrl-C and SIGTERM cancel `main`; from then on the deadline counts. Then KeyboardInterrupt
    or SystemExit(143) is raised, so that the shell sees what it expects, unless `main` makes
    something else of its cancel. A second signal does not wait.

    >>> async def main():
    ...     return 42
    >>> run(main)
    42
    """
    coro: Any = main() if callable(main) else main
    if not asyncio.iscoroutine(coro):
        raise TypeError(f"run() takes a coroutine or an async function, not {main!r}")
    held_back = HeldBack()
    try:
        grace, deadline = seconds("grace", grace), seconds("deadline", deadline)
        if asyncio._get_running_loop() is not None:
            raise RuntimeError(
                "run() cannot be called while an event loop runs in this thread; there, await "
                f"{getattr(coro, '__qualname__', 'it')} or spawn it in a Scope"
            )
        # From here until `Signals` listens, and after that until the loop is closed, a signal
        # would strike between two lines and leave the loop open.
        held_back.hold()
        loop = loop_factory() if loop_factory is not None else asyncio.new_event_loop()
    except BaseException:
        coro.close()
        held_back.let_go()
        raise
    try:
        asyncio.set_event_loop(loop)
        if debug is not None:
            loop.set_debug(debug)
        value: T = _Program(loop, coro, grace, deadline).run(held_back)
        return value
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        held_back.let_go()


class _Program:
    """One run: main, then the end of all else, in one span of time."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        coro: Coroutine[Any, Any, Any],
        grace: float,
        deadline: float,
    ) -> None:
        self._loop = loop
        self._grace = grace
        self._deadline = deadline
        self._until: float | None = None
        # A signal came while main was there to take it.
        self._told_main = False
        try:
            self._pool = Pool(loop, "holdfast.run")
            self._signals = Signals(loop, deadline)
            self._main: AnyTask = loop.create_task(coro, name="main")
        except BaseException:
            coro.close()
            raise
        self._attending = self._own(self._attend())

    def _own(self, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of ours: a program that cancels all tasks it sees does not mean this one."""
        task = self._loop.create_task(coro)
        out_of_reach(task)
        return task

    def run(self, held_back: HeldBack) -> Any:
        flown: list[BaseException] = []
        with self._signals:
            held_back.let_go()
            try:
                self._to_the_end(flown)
            finally:
                held_back.hold()
        if flown:
            error = self._main.exception() if self._main_has_ended() else None
            if error is None or error is flown[0]:
                raise flown[0]
            raise flown[0] from error
        return self._outcome()

    def _to_the_end(self, flown: list[BaseException]) -> None:
        try:
            self._loop.run_until_complete(self._attending)
        except BaseException as error:
            flown.append(error)
        ending = self._own(self._wind_down())
        flown += drive(self._loop, ending)
        before = len(self._signals.received)
        threads = self._pool.end(self._left(), lambda: self._signals.press(before))
        _say(ending.result() + threads)

    async def _attend(self) -> None:
        """Wait for main to end; after a signal, not for ever."""
        main, signals = self._main, self._signals
        await asyncio.wait({main, signals.asked}, return_when=asyncio.FIRST_COMPLETED)
        if not main.done():
            self._told_main = True
            main.cancel()
            await wait_all({main}, self._left(), signals.insisted)

    def _left(self) -> float:
        """Seconds to the deadline, which counts from the first time that this is asked."""
        if self._until is None:
            self._until = self._loop.time() + self._deadline
        return max(0.0, self._until - self._loop.time())

    async def _wind_down(self) -> list[Straggler]:
        signals = self._signals
        self._attending.cancel()
        await asyncio.wait({self._attending})
        if self._grace and not signals.received:
            others = asyncio.all_tasks() - {self._main}
            await wait_all(others, min(self._grace, self._left()), signals.asked)
        return await wind_down(
            deadline=self._left(),
            asked={self._main} if self._told_main else (),
            hurry=signals.insisted,
        )

    def _main_has_ended(self) -> bool:
        """By itself, with a value or an error."""
        return self._main.done() and not self._main.cancelled()

    def _outcome(self) -> Any:
        """What main has come to; or what the shell expects after a signal that main has not
        made anything of."""
        if self._signals.received and not (self._told_main and self._main_has_ended()):
            raise self._signals.error() from (
                self._main.exception() if self._main_has_ended() else None
            )
        return self._main.result()


def _say(left: Iterable[Straggler]) -> None:
    if sys.stderr is not None:  # pythonw has none
        for straggler in left:
            sys.stderr.write(f"holdfast.run: still there at the end: {straggler}\n")
