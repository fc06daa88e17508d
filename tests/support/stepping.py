"""A stock event loop with virtual time, and a hook between any two handles.

Only the clock and the moment of a cancel from outside are simulated; the order of handles is that
of `BaseEventLoop._run_once`. So a test can cancel a task at each point at which it
could ever be cancelled, and no test waits for the wall clock.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
Program = Callable[["Stepping"], Coroutine[Any, Any, T]]

# A step too many means that the program never ends.
_ENDLESS = 200_000


class Deadlock(AssertionError):
    """Nothing is ready, no timer runs, and nothing from outside came for some real seconds."""


class WrappedSelector(selectors.BaseSelector):
    """The real selector, for subclasses that move a clock instead of waiting."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class _VirtualSelector(WrappedSelector):
    """Instead of waiting for a timer it moves the clock. Threads and sockets are real."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = self._real.select(0)
        if events or timeout == 0:
            return events
        if timeout is None:
            events = self._real.select(10)
            if not events:
                raise Deadlock("the loop waits for something that never comes")
            return events
        self.now += timeout
        return events


class StepQueue(deque[asyncio.Handle]):
    """The loop's own queue; taking a handle out of it is one step."""

    def __init__(self, on_step: Callable[[asyncio.Handle], None] = lambda _: None) -> None:
        super().__init__()
        self.on_step = on_step

    def popleft(self) -> asyncio.Handle:
        self.on_step(self[0])
        return super().popleft()


class SteppingLoop(asyncio.SelectorEventLoop):
    """The stock loop with virtual time and a hook before each handle."""

    def __init__(self) -> None:
        self._virtual = _VirtualSelector()
        super().__init__(self._virtual)
        self._ready = StepQueue()
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._virtual.now

    def on_step(self, hook: Callable[[], None]) -> None:
        self._ready.on_step = lambda _: hook()


class Stepping:
    """Passed to the program under test, which names the task to cancel."""

    def __init__(self, loop: SteppingLoop, cancel_at: int | None, times: int, gap: int = 1) -> None:
        self.loop = loop
        self.steps = 0
        self.since_victim = 0
        self.victim_task: asyncio.Task[Any] | None = None
        self._cancel_at = cancel_at
        self._times = times
        self._gap = gap
        self._checks: list[Callable[[], None]] = []
        self.cancelled = False
        self.errors: list[dict[str, Any]] = []
        loop.on_step(self._step)
        loop.set_exception_handler(lambda _, context: self.errors.append(context))

    def victim(self, task: asyncio.Task[T]) -> asyncio.Task[T]:
        """From now on `task` may be cancelled."""
        self.victim_task = task
        return task

    def at_each_step(self, check: Callable[[], None]) -> None:
        """Call `check` between any two handles from now on, before a task is cancelled."""
        self._checks.append(check)

    def _step(self) -> None:
        self.steps += 1
        for check in self._checks:
            check()
        if self.steps > _ENDLESS:
            raise AssertionError("the program does not end")
        task = self.victim_task
        if task is None or self._cancel_at is None or task.done() or self._times == 0:
            return
        if self.since_victim >= self._cancel_at:
            self.cancelled = True
            self._times -= 1
            self._cancel_at = self.since_victim + self._gap
            task.cancel()
        self.since_victim += 1


def run_stepping(program: Program[T], *, cancel_at: int | None = None, times: int = 1) -> T:
    """Run `program` once in virtual time; the victim is cancelled at one step, or at `times`
    steps in a row from there."""
    value, _ = _run(program, cancel_at, times)
    return value


def cancel_everywhere(program: Program[T], *, times: int = 1, gap: int = 1) -> Iterator[T]:
    """Run `program` again and again, its victim cancelled one step later each time, until the
    victim has ended before its turn. The outcome of each run. Several cancels are `gap` steps
    apart."""
    cancel_at = 0
    while True:
        value, stepping = _run(program, cancel_at, times, gap)
        yield value
        if not stepping.cancelled:
            return
        cancel_at += 1


def _run(
    program: Program[T], cancel_at: int | None, times: int, gap: int = 1
) -> tuple[T, Stepping]:
    loop = SteppingLoop()
    stepping = Stepping(loop, cancel_at, times, gap)
    asyncio.set_event_loop(loop)
    try:
        value = loop.run_until_complete(program(stepping))
        left = asyncio.all_tasks(loop)
        assert not left, f"tasks left over: {left}"
        assert not stepping.errors, f"the loop's exception handler was called: {stepping.errors}"
        timers = [handle for handle in getattr(loop, "_scheduled") if not handle.cancelled()]  # noqa: B009
        assert not timers, f"timers left over: {timers}"
        loop.run_until_complete(loop.shutdown_asyncgens())
        return value, stepping
    finally:
        asyncio.set_event_loop(None)
        loop.close()


# --- the kinds of loop on which everything must hold ---------------------------------------


def loop_kinds() -> list[str]:
    kinds = ["stock"]
    if sys.version_info >= (3, 12):
        kinds.append("eager")
    if sys.platform != "win32":
        kinds.append("uvloop")
        # Here, and not with the first loop: a recording patches it as it begins. The tests of the site
        # are run without it.
        with suppress(ImportError):
            import uvloop  # noqa: F401
    return kinds


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    if kind == "uvloop":
        import uvloop

        return uvloop.new_event_loop()
    loop = asyncio.new_event_loop()
    if kind == "eager":
        loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009
    if kind == "wrapping":
        loop.set_task_factory(wrapping_factory)
    return loop


def wrapping_factory(
    loop: asyncio.AbstractEventLoop, coro: Any, **options: Any
) -> asyncio.Task[Any]:
    """A task factory that puts a coroutine of its own around each, as tracing libraries do."""

    async def traced() -> Any:
        return await coro

    return asyncio.Task(traced(), loop=loop, **options)


def run_on(kind: str, main: Coroutine[Any, Any, T], *, debug: bool = False) -> T:
    """Like asyncio.run, on a loop of this kind. A call of the loop's exception handler fails the
    test."""
    reported: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=lambda: new_loop(kind), debug=debug) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: reported.append(context))
        value = runner.run(main)
        left = asyncio.all_tasks(runner.get_loop())
        assert not left, f"tasks left over: {left}"
    assert not reported, f"the loop's exception handler was called: {reported}"
    return value
