"""Things to host that break when they are left in another task, and notes of what they went through.

Each has a task group or a cancel scope around its `yield`, and a clean-up of several turns: one that
is cut, runs twice or runs elsewhere shows.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

from tests.support.stepping import Stepping, SteppingLoop

T = TypeVar("T")

# What stands around the `yield`.
INSIDES = ("nothing", "task group", "time-out", "anyio task group", "anyio cancel scope")
GROUPS = ("task group", "anyio task group")


def place(function: Any, words: str) -> str:
    """Where in the source of a function these words stand first, as a report would put it."""
    lines, start = inspect.getsourcelines(inspect.unwrap(function))
    line = next(number for number, text in enumerate(lines, start) if words in text)
    return f":{line} in {function.__qualname__}"


class Life:
    """What one hosted thing went through, and in which task."""

    def __init__(self, pause: float = 0.5) -> None:
        self.owner: asyncio.Task[Any] | None = None
        self.pause = pause  # how long the clean-up takes
        self.begun = 0
        self.ended = 0
        self.strangers: list[asyncio.Task[Any] | None] = []

    def enter(self) -> None:
        assert self.owner is None, "it was entered twice"
        self.owner = asyncio.current_task()

    async def clean_up(self) -> None:
        self.begun += 1
        self.here()
        await asyncio.sleep(0)
        await asyncio.sleep(self.pause)
        self.here()
        self.ended += 1

    def here(self) -> None:
        """A line that belongs into the owner."""
        if asyncio.current_task() is not self.owner:
            self.strangers.append(asyncio.current_task())

    def check(self) -> None:
        """Once in, once out, in one task; or never in."""
        assert not self.strangers, f"entered in {self.owner}, but run in {self.strangers}"
        expected = 0 if self.owner is None else 1
        assert (self.begun, self.ended) == (expected, expected), "a clean-up was cut, or run twice"


async def _forever() -> None:
    await asyncio.get_running_loop().create_future()


class _Unbegun(Coroutine[Any, Any, None]):
    """As `_forever`, and it does not mind if nobody awaits it: anyio forgets a child whose task is
    cancelled before its first step."""

    def __await__(self) -> Generator[Any, None, None]:
        return _forever().__await__()

    def send(self, value: Any) -> Any:
        raise NotImplementedError("it is awaited")

    def throw(self, *_: Any) -> Any:
        raise NotImplementedError("it is awaited")

    def close(self) -> None: ...


@asynccontextmanager
async def inside(kind: str) -> AsyncIterator[None]:
    """A block of this kind, with a child that only a cancel ends."""
    if kind == "nothing":
        yield
    elif kind == "task group":
        async with asyncio.TaskGroup() as group:
            child = group.create_task(_forever())
            yield
            child.cancel()
    elif kind == "time-out":
        async with asyncio.timeout(3600):
            yield
    elif kind == "anyio task group":
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_Unbegun)
            yield
            tasks.cancel_scope.cancel()
    else:
        with anyio.CancelScope():
            yield


@asynccontextmanager
async def resource(life: Life, kind: str = "nothing") -> AsyncIterator[Life]:
    life.enter()
    try:
        await asyncio.sleep(0)
        async with inside(kind):
            yield life
    finally:
        await life.clean_up()


async def numbers(life: Life, kind: str = "nothing") -> AsyncGenerator[int, None]:
    """0, 1, 2, then a wait without end."""
    life.enter()
    try:
        async with inside(kind):
            for n in range(3):
                await asyncio.sleep(0)
                life.here()
                yield n
            await _forever()
    finally:
        await life.clean_up()


async def gone_after(use: Callable[[Life, str], Awaitable[None]], life: Life, kind: str) -> None:
    """Whichever way the use of a thing comes to its end: it is gone by then, and not later."""
    try:
        await use(life, kind)
    finally:
        life.check()


async def outcome(act: Callable[..., Awaitable[object]], *args: object) -> str:
    """`finished`, `cancelled` or the name of the error."""
    try:
        await act(*args)
    except asyncio.CancelledError:
        return "cancelled"
    except Exception as error:
        return type(error).__name__
    return "finished"


class Uncancelled:
    """Watches a task at each step: nobody may have cancelled it."""

    def __init__(self, stepping: Stepping, task: asyncio.Task[Any] | None) -> None:
        assert task is not None
        self._task = task
        self.most = 0
        stepping.at_each_step(self._look)

    def _look(self) -> None:
        self.most = max(self.most, self._task.cancelling())


def after_steps(
    loop: asyncio.AbstractEventLoop, at_each_step: Callable[[Callable[[], None]], None], steps: int
) -> asyncio.Future[None]:
    """A future that is done once the loop has made so many steps from now."""
    reached: asyncio.Future[None] = loop.create_future()
    left = steps

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0 and not reached.done():
            reached.set_result(None)

    at_each_step(step)
    return reached


async def overlapping(
    stepping: Stepping, steps: Iterable[int], close: Callable[[], Awaitable[object]]
) -> list[asyncio.Task[str]]:
    """Closers, each of which begins after so many steps. All of them have ended."""

    async def closer(begin: asyncio.Future[None]) -> str:
        await asyncio.wait({begin}, timeout=1000)  # by then the others have long ended
        return await outcome(close)

    closers = [
        asyncio.create_task(closer(after_steps(stepping.loop, stepping.at_each_step, count)))
        for count in steps
    ]
    await asyncio.wait(closers)
    return closers


def tear_down_everywhere(start: Callable[[], Awaitable[asyncio.Task[T]]]) -> Iterator[T | str]:
    """Run `start`, which leaves a task running, and end the program one step later each time, as
    asyncio.run does: cancel all, wait, close the loop. How the task ended, until it had its time."""
    steps = 0
    while True:
        task, in_time = _torn_down_after(steps, start)
        yield "cancelled" if task.cancelled() else task.result()
        if in_time:
            return
        steps += 1


def _torn_down_after(
    steps: int, start: Callable[[], Awaitable[asyncio.Task[T]]]
) -> tuple[asyncio.Task[T], bool]:
    reported: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SteppingLoop)
        loop.set_exception_handler(lambda _, context: reported.append(context))

        async def main() -> asyncio.Task[T]:
            task = await start()
            end = after_steps(loop, loop.on_step, steps)
            either: set[asyncio.Future[Any]] = {task, end}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return task

        task = runner.run(main())
        in_time = task.done()
    assert task.done()
    assert not reported, f"the loop's exception handler was called: {reported}"
    return task, in_time
