"""A loop in another thread, which a test can block, stop, close and look into."""

from __future__ import annotations

import asyncio
import selectors
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import handfast
from tests.support.stepping import new_loop

T = TypeVar("T")


class Watched(selectors.DefaultSelector):
    """A selector that says when the loop goes to sleep, and counts how often it was woken."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = threading.Event()
        self.woken = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            self.asleep.set()
        events = super().select(timeout)
        if timeout is None:
            self.asleep.clear()
            self.woken += 1
        return events


class ForeignLoop:
    """Runs until it is left; then everything is taken down, however it stands."""

    def __init__(self, loop: asyncio.AbstractEventLoop | str = "stock") -> None:
        self.loop = new_loop(loop) if isinstance(loop, str) else loop
        self.reported: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.reported.append(context))
        self.thread = threading.Thread(target=self.loop.run_forever, name="foreign", daemon=True)
        self._gates: list[threading.Event] = []

    def __enter__(self) -> Self:
        started = threading.Event()
        self.loop.call_soon(started.set)
        self.thread.start()
        started.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        if error is None:
            assert self.reported == []

    def do(self, function: Callable[[], T]) -> T:
        """Call it on the loop's thread, and wait for its value."""

        async def call() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result()

    def wait_for(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        async def call() -> T:
            return await awaitable()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result()

    def scope(self, name: str = "foreign", **options: Any) -> handfast.Scope:
        """A scope that is bound to this loop."""
        return self.do(lambda: handfast.Scope(name, **options))

    def turn(self) -> None:
        """Until all that is ready now has been run."""
        self.do(lambda: None)

    def block(self, first: Callable[[], object] = lambda: None) -> threading.Event:
        """Block the loop in the middle of a callback, until the event that is returned is set."""
        blocked, gate = threading.Event(), threading.Event()
        self._gates.append(gate)

        def wait() -> None:
            first()
            blocked.set()
            gate.wait()

        self.loop.call_soon_threadsafe(wait)
        blocked.wait()
        return gate

    def stop(self) -> None:
        """Stop the loop; it can run again, but nobody makes it."""
        for gate in self._gates:
            gate.set()
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join()

    def run_again(self) -> None:
        """Let a loop that was stopped go on, in this thread, until it has nothing to do."""
        for _ in range(10):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def close(self) -> None:
        self.stop()
        if not self.loop.is_closed():
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.run_again()
            self.loop.close()

    def abandon(self) -> None:
        """Close the loop under all that runs on it."""
        self.stop()
        for task in asyncio.all_tasks(self.loop):
            setattr(task, "_log_destroy_pending", False)  # noqa: B010
        self.loop.close()
