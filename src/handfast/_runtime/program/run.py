"""`run`: like `asyncio.run`, but its end has a deadline and names what does not end.

`asyncio.run` waits for ever for a task that swallows its cancel. Here the whole shutdown has
one deadline, and tasks and threads that still run are listed on standard error.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from handfast._asyncio_internals import (
    create_named_task,
    detach_selector,
    mute_destroyed_warning,
    pending_tasks,
    running_loop,
)
from handfast._runtime.arguments import CLOSE_TIMEOUT, require_coroutine, seconds, wrong_type
from handfast._runtime.cancel_reason import CancelReason
from handfast._runtime.errors import WrongLoop
from handfast._runtime.fork import keep_loop, register_inherited
from handfast._runtime.program.loop_shutdown import run_until_done, shut_down_loop, wait_all
from handfast._runtime.program.signals import DeferredSignals, Signals
from handfast._runtime.program.thread_pool import ThreadPool
from handfast._runtime.report import Straggler
from handfast._runtime.scope.tasks.task_registry import AnyTask
from handfast._runtime.uncancellable import hide_from_all_tasks

T = TypeVar("T")


def run(
    main: Coroutine[Any, Any, T] | Callable[[], Coroutine[Any, Any, T]],
    *,
    grace: float = 0.0,
    timeout: float = CLOSE_TIMEOUT,
    debug: bool | None = None,
    loop_factory: Callable[[], AbstractEventLoop] | None = None,
) -> T:
    """Run `main` in a new event loop, and end everything else in that loop.

    When `main` has ended, other tasks have `grace` seconds to finish by themselves; then they
    are cancelled, once. All of that, with async generators and the default executor, takes
    `timeout` seconds at most.

    Ctrl-C and SIGTERM cancel `main`; the timeout counts from then on. Then KeyboardInterrupt
    or SystemExit(143) is raised, as the shell expects, unless `main` handles its cancel and
    returns or raises. After a second signal nothing is waited for.

    >>> async def main():
    ...     return 42
    >>> run(main)
    42
    """
    coro: Any = main() if callable(main) else main
    if not isinstance(coro, Coroutine):
        raise wrong_type("run", "a coroutine or an async function", main, "main must be async")
    require_coroutine("run", coro)
    deferred = DeferredSignals()
    try:
        grace, timeout = seconds("grace", grace), seconds("timeout", timeout)
        if running_loop() is not None:
            raise RuntimeError(
                "run() cannot be called while an event loop runs in this thread; there, await "
                f"{getattr(coro, '__qualname__', 'it')} or spawn it in a Scope"
            )
        # From here until `Signals` listens, and after that until the loop is closed, a signal
        # would strike between two lines and leave the loop open.
        deferred.defer()
        loop = loop_factory() if loop_factory is not None else asyncio.new_event_loop()
    except BaseException:
        coro.close()
        deferred.deliver()
        raise
    program: _Program | None = None
    try:
        asyncio.set_event_loop(loop)
        if debug is not None:
            loop.set_debug(debug)
        program = _Program(loop, coro, grace, timeout)
        value: T = program.run(deferred)
        return value
    finally:
        asyncio.set_event_loop(None)
        if program is None or program.may_close_loop():
            loop.close()
        deferred.deliver()


class _Program:
    """One run: main, and then the shutdown, with one deadline."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        coro: Coroutine[Any, Any, Any],
        grace: float,
        timeout: float,
    ) -> None:
        self._loop = loop
        self._grace = grace
        self._timeout = timeout
        self._until: float | None = None
        # A signal has cancelled main.
        self._main_cancelled = False
        # Whether this process is a fork of the one that has called `run`; whether the loop then
        # has nothing in common with that of the parent.
        self._forked = False
        self._detached = False
        try:
            self._pool = ThreadPool(loop, "handfast.run")
            self._signals = Signals(loop, timeout)
            self._main: AnyTask = create_named_task(loop, coro, "main")
        except BaseException:
            coro.close()
            raise
        self._waiting = self._own(self._wait_for_main())
        register_inherited(self)

    def on_fork(self) -> None:
        """In a child that main has forked: its tasks and its loop are those of the parent."""
        self._forked = True
        self._signals.on_fork()
        self._detached = detach_selector(self._loop)
        mute_destroyed_warning(self._waiting)
        keep_loop(self._loop)
        # The step of main that has forked is the last one here. No loop counts as running in a
        # fork, so every step of a task would fail: since 3.14 with an error in the log.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._loop.stop()

    def may_close_loop(self) -> bool:
        """Whether closing the loop has no effect on the loop of a parent process."""
        return not self._forked or self._detached

    def _own(self, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of our own: a program that cancels all tasks must not cancel this one."""
        task = self._loop.create_task(coro)
        hide_from_all_tasks(task)
        return task

    def run(self, deferred: DeferredSignals) -> Any:
        interrupts: list[BaseException] = []
        with self._signals:
            deferred.deliver()
            try:
                self._run_and_shut_down(interrupts)
            finally:
                self._signals.stop_resending()
                deferred.defer()
        if interrupts:
            error = self._main.exception() if self._main_has_ended() else None
            if error is None or error is interrupts[0]:
                raise interrupts[0]
            raise interrupts[0] from error
        return self._outcome()

    def _run_and_shut_down(self, interrupts: list[BaseException]) -> None:
        try:
            self._loop.run_until_complete(self._waiting)
        except BaseException as error:
            interrupts.append(error)
        if self._forked:
            interrupts[:] = self._outcome_in_fork(interrupts)
            return  # everything else ends in the parent
        ending = self._own(self._shut_down())
        interrupts += run_until_done(self._loop, ending)
        before = len(self._signals.received)
        threads = self._pool.end(self._left(), lambda: self._signals.more_than(before))
        _print_stragglers(ending.result() + threads)

    def _outcome_in_fork(self, interrupts: list[BaseException]) -> list[BaseException]:
        """What to raise in a forked child instead of the outcome of main."""
        if self._main.done():
            return []
        if isinstance(interrupts[0], RuntimeError):  # the loop was stopped
            error = WrongLoop(
                "main has forked, and cannot wait in the fork: its loop is in the parent process"
            )
            return [error]
        return interrupts

    async def _wait_for_main(self) -> None:
        """Wait until main has ended; after a signal, until the deadline at most."""
        main, signals = self._main, self._signals
        await asyncio.wait({main, signals.first}, return_when=asyncio.FIRST_COMPLETED)
        if not main.done():
            self._main_cancelled = True
            main.cancel(CancelReason(signal.Signals(signals.received[0]).name))
            await wait_all({main}, self._left(), signals.second)

    def _left(self) -> float:
        """Seconds to the deadline, which counts from the first call of this method."""
        if self._until is None:
            self._until = self._loop.time() + self._timeout
        return max(0.0, self._until - self._loop.time())

    async def _shut_down(self) -> list[Straggler]:
        signals = self._signals
        self._waiting.cancel()
        await asyncio.wait({self._waiting})
        if self._grace and not signals.received:
            others = pending_tasks(self._loop) - {self._main}
            await wait_all(others, min(self._grace, self._left()), signals.first)
        return await shut_down_loop(
            timeout=self._left(),
            cancelled={self._main} if self._main_cancelled else (),
            stop_waiting=signals.second,
        )

    def _main_has_ended(self) -> bool:
        """Whether main has ended with a value or an error, and not by a cancel."""
        return self._main.done() and not self._main.cancelled()

    def _outcome(self) -> Any:
        """The result of main; or what the shell expects after a signal, if main was cancelled or
        had ended before the signal."""
        if self._signals.received and not (self._main_cancelled and self._main_has_ended()):
            raise self._signals.error() from (
                self._main.exception() if self._main_has_ended() else None
            )
        return self._main.result()


def _print_stragglers(stragglers: Iterable[Straggler]) -> None:
    if sys.stderr is not None:  # pythonw has none
        for straggler in stragglers:
            sys.stderr.write(f"handfast.run: still running at the end: {straggler}\n")
