"""A11: wrong arguments are refused at the call and harm nobody; any class of coroutines is taken."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import pytest

import handfast
from handfast import KeyedTasks, Scope, race, shielded
from handfast.types import TaskEnd
from tests.support.stepping import new_loop, run_on

# Each starts a coroutine; the last three through a function that returns it.
STARTERS: dict[str, Callable[[Scope, Any], Any]] = {
    "spawn": lambda scope, coro: scope.spawn(coro),
    "race": lambda _, coro: race(coro),
    "shielded": lambda _, coro: shielded(coro),
    "key": lambda scope, coro: KeyedTasks(scope).start("k", lambda: coro),
    "key (share)": lambda scope, coro: KeyedTasks(scope).share("k", lambda: coro),
    "start": lambda scope, coro: scope.start(lambda _ready: coro),
}


@pytest.mark.parametrize("starter", STARTERS)
def test_a_coroutine_that_runs_is_refused_and_runs_on(any_kind: str, starter: str) -> None:
    """A11: 0.1.0 closed it, and its task ended with an error."""

    async def work(go: asyncio.Event) -> str:
        await go.wait()
        return "done"

    async def main() -> None:
        go = asyncio.Event()
        coro = work(go)
        task = asyncio.get_running_loop().create_task(coro)
        await asyncio.sleep(0)
        async with Scope("s") as scope:
            with pytest.raises(RuntimeError, match="takes a coroutine that has not started, not"):
                await STARTERS[starter](scope, coro)
            assert len(scope) == 0
        go.set()
        assert await task == "done"

    run_on(any_kind, main())


def test_the_function_that_is_submitted_may_not_give_a_coroutine_that_runs(any_kind: str) -> None:
    """A11: the call fails on the loop, and the coroutine runs on."""

    async def main() -> None:
        go = asyncio.Event()
        coro = go.wait()
        task = asyncio.get_running_loop().create_task(coro)
        await asyncio.sleep(0)
        async with Scope("s") as scope:
            with pytest.raises(RuntimeError, match="awaited already"):
                await asyncio.wrap_future(scope.submit(lambda: coro))
            with pytest.raises(TypeError, match=r"submit\(\) takes an async function"):
                scope.submit(coro)  # type: ignore[arg-type]
        go.set()
        assert await task

    run_on(any_kind, main())


@pytest.mark.parametrize("first", ["another task", "another scope"])
def test_a_coroutine_that_two_have_started_runs_to_its_end_in_the_first(first: str) -> None:
    """A11: when the second is called the coroutine has not run yet, so its task fails."""

    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    async def main() -> None:
        coro = work()
        async with Scope("one") as one, Scope("two", on_failure="report") as two:
            loop = asyncio.get_running_loop()
            task = loop.create_task(coro) if first == "another task" else one.spawn(coro)
            with pytest.raises(RuntimeError, match="awaited already"):
                await two.spawn(coro)
            assert await task == "done"

    run_on("stock", main())


def test_a_coroutine_that_spawns_itself_runs_on(kind: str) -> None:
    """A11."""

    async def main() -> None:
        mine: list[Any] = []

        async def work(scope: Scope) -> str:
            with pytest.raises(RuntimeError, match=r"awaited already|has not started"):
                await scope.spawn(mine[0])
            return "done"

        async with Scope("s", on_failure="report") as scope:
            mine.append(work(scope))
            assert await mine[0] == "done"
            mine.clear()

    with asyncio.Runner(loop_factory=lambda: new_loop(kind)) as runner:
        runner.run(main())


@pytest.mark.parametrize("starter", ["race", "shielded", "start"])
def test_a_coroutine_that_has_ended_is_refused(starter: str) -> None:
    async def main() -> None:
        coro = asyncio.sleep(0)
        await coro
        async with Scope("s") as scope:
            with pytest.raises(RuntimeError, match="takes a coroutine that has not started, not"):
                await STARTERS[starter](scope, coro)

    asyncio.run(main())


def test_run_refuses_a_coroutine_that_has_ended() -> None:
    coro = asyncio.sleep(0)
    coro.close()
    with pytest.raises(RuntimeError, match=r"run\(\) takes a coroutine that has not started"):
        handfast.run(coro)


class Foreign(Coroutine[Any, Any, str]):
    """A coroutine of a class of its own, as compiled code has it: equal to any other."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *, wait: bool = False) -> None:
        self._inner = self._wait() if wait else self._work()
        self.closed = False

    async def _work(self) -> str:
        await asyncio.sleep(0)
        return "done"

    async def _wait(self) -> str:
        await asyncio.Event().wait()
        return "never"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Foreign)

    def __bool__(self) -> bool:
        return False

    def send(self, value: Any) -> Any:
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        return self._inner.throw(*error)

    def close(self) -> None:
        self.closed = True
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, str]:
        return self._inner.__await__()


@pytest.mark.parametrize("starter", [name for name in STARTERS if name != "start"])
def test_any_class_of_coroutines_is_taken(any_kind: str, starter: str) -> None:
    """A11: also if two of them are equal, and have no hash."""

    async def main() -> None:
        async with Scope("s") as scope:
            both = [STARTERS[starter](scope, Foreign()) for _ in range(2)]
            assert [await each for each in both] == ["done", "done"]

    run_on(any_kind, main())


def test_a_task_is_named_after_the_class_of_its_coroutine(any_kind: str) -> None:
    async def main() -> None:
        async with Scope("s") as scope:
            task = scope.spawn(Foreign())
            assert task.get_name() == "Foreign"
            assert type(task.get_coro()) is Foreign or any_kind == "wrapping"
            assert KeyedTasks(scope).start("k", Foreign).get_name() == "Foreign"

    run_on(any_kind, main())


@pytest.mark.parametrize("started", [False, True])
def test_a_coroutine_of_another_class_is_cancelled_and_closed(any_kind: str, started: bool) -> None:
    """A11: before its first step, and while it waits."""

    async def main() -> None:
        scope = Scope("s")
        coros = [Foreign(wait=True), Foreign(wait=True)]
        scope.spawn(coros[0])
        KeyedTasks(scope).start("k", lambda: coros[1])
        if started:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        report = await scope.close()
        assert [end.name for end in report.cancelled] == ["Foreign", "Foreign"]
        assert all(coro.closed for coro in coros)

    run_on(any_kind, main())


class AsyncCall:
    async def __call__(self, end: TaskEnd) -> None: ...

    async def method(self, end: TaskEnd) -> None: ...


async def handler(end: TaskEnd) -> None: ...


@pytest.mark.parametrize(
    "given",
    [handler, AsyncCall(), AsyncCall().method, functools.partial(handler)],
    ids=["function", "object", "method", "partial"],
)
def test_an_async_on_failure_is_refused_at_the_call(given: Callable[..., Awaitable[None]]) -> None:
    """A11: its coroutine would never be awaited."""
    with pytest.raises(TypeError, match="on_failure must be a plain function, not"):
        Scope(on_failure=given)  # type: ignore[arg-type]


def test_an_on_failure_that_gives_a_coroutine_is_reported_with_the_failure(any_kind: str) -> None:
    """A11: a lambda does not show that it is async. Neither error is lost."""
    reported: list[BaseException] = []

    async def fail() -> None:
        raise ValueError("work")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: reported.append(context["exception"]))
        async with Scope("s", on_failure=lambda end: handler(end)) as scope:  # type: ignore[arg-type]
            scope.spawn(fail())
            scope.supervise(fail, name="service")
            await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=lambda: new_loop(any_kind)) as runner:
        runner.run(main())
    assert len(reported) == 2
    for error in reported:
        assert "gave a coroutine, which is not awaited" in str(error)
        assert repr(error.__context__) == "ValueError('work')"
