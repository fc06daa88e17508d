"""What `spawn` takes and what it refuses: at once, clearly, with no coroutine left unawaited."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

import handfast
from tests.support.stepping import Stepping, new_loop, run_on, run_stepping


async def noop() -> None:
    pass


@pytest.fixture(autouse=True)
def nothing_unawaited() -> Any:
    """A coroutine that was refused and not closed shows when it is collected."""
    yield
    gc.collect()


def refused(bad: Any, error: type[Exception], match: str) -> None:
    async def program(_: Stepping) -> None:
        scope = handfast.Scope("s")
        with pytest.raises(error, match=match):
            scope.spawn(bad)
        await scope.close()

    run_stepping(program)


@pytest.mark.parametrize("bad", [None, 3, "text", object()])
def test_something_that_is_no_coroutine_is_refused(bad: object) -> None:
    refused(bad, TypeError, r"spawn\(\) takes a coroutine, not")


def test_an_async_function_that_was_not_called_is_refused_with_a_hint() -> None:
    refused(noop, TypeError, r"call it: spawn\(fn\(\)\)")


def test_a_generator_is_refused() -> None:
    refused((n for n in range(3)), TypeError, "takes a coroutine")


def test_a_gather_is_refused_with_a_hint() -> None:
    """S4.1: seed 004 made a task of a gather. Each child is spawned by itself."""

    async def program(_: Stepping) -> None:
        scope = handfast.Scope("s")
        bundle = asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
        with pytest.raises(TypeError, match="spawn each child by itself"):
            scope.spawn(bundle)  # type: ignore[arg-type]
        await bundle
        await scope.close()

    run_stepping(program)


def test_the_same_coroutine_twice_is_refused() -> None:
    async def program(_: Stepping) -> None:
        async with handfast.Scope("s") as scope:
            coro = noop()
            scope.spawn(coro)
            with pytest.raises(handfast.errors.HandfastError, match="already a task of scope 's'"):
                scope.spawn(coro)

    run_stepping(program)


def test_spawn_on_another_thread_is_refused_and_names_submit(kind: str) -> None:
    async def main() -> None:
        scope = handfast.Scope("s")
        scope.spawn(noop())
        errors: list[Exception] = []

        def foreign() -> None:
            try:
                scope.spawn(noop())
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=foreign)
        thread.start()
        thread.join()
        assert isinstance(errors[0], handfast.errors.WrongLoop)
        assert "scope.submit()" in str(errors[0])
        await scope.close()

    run_on(kind, main())


def test_spawn_on_another_loop_is_refused() -> None:
    scopes: list[handfast.Scope] = []

    async def first() -> None:
        scopes.append(handfast.Scope("s"))
        scopes[0].spawn(noop())
        await scopes[0].close()

    async def second() -> None:
        with pytest.raises(handfast.errors.WrongLoop, match="this is another event loop"):
            scopes[0].spawn(noop())
        with pytest.raises(handfast.errors.WrongLoop):
            await scopes[0].close()

    asyncio.run(first())
    asyncio.run(second())


def test_spawn_without_a_loop_is_refused() -> None:
    scope = handfast.Scope("s")
    with pytest.raises(handfast.errors.WrongLoop, match="no event loop runs here"):
        scope.spawn(noop())


def test_a_scope_made_without_a_loop_takes_the_first_it_is_used_on(kind: str) -> None:
    scope = handfast.Scope("s")

    async def main() -> None:
        task = scope.spawn(noop())
        await task
        await scope.close()

    run_on(kind, main())


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: handfast.Scope("s", grace=-1), ValueError, "grace must be"),
        (lambda: handfast.Scope("s", grace=float("nan")), ValueError, "grace must be"),
        (lambda: handfast.Scope("s", grace="soon"), TypeError, "grace must be"),  # type: ignore[arg-type]
        (lambda: handfast.Scope("s", grace=True), TypeError, "grace must be"),
        (lambda: handfast.Scope("s", timeout=-1), ValueError, "timeout must be"),
        (lambda: handfast.Scope("s", limit=0), ValueError, "limit must be at least 1"),
        (lambda: handfast.Scope(3), TypeError, "name must be a string"),  # type: ignore[arg-type]
        (lambda: handfast.Scope(on_failure="shrug"), ValueError, "on_failure must be"),  # type: ignore[arg-type]
    ],
)
def test_a_scope_refuses_bad_settings_at_once(
    make: Callable[[], object], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize("call", ["grace", "timeout"])
def test_close_refuses_a_negative_time(call: str) -> None:
    async def program(_: Stepping) -> None:
        scope = handfast.Scope("s")
        with pytest.raises(ValueError, match=f"{call} must be"):
            await scope.close(**{call: -1.0})
        await scope.close()

    run_stepping(program)


def test_a_task_runs_in_the_context_that_it_is_given(any_kind: str) -> None:
    number: ContextVar[int] = ContextVar("number", default=0)

    async def count() -> int:
        await asyncio.sleep(0)
        number.set(number.get() + 1)
        return number.get()

    async def main() -> None:
        context = copy_context()
        context.run(number.set, 10)
        async with handfast.Scope("s") as scope:
            assert await scope.spawn(count(), context=context) == 11
            assert await scope.spawn(count(), context=context, name="again") == 12
            assert await scope.spawn(count()) == 1
        assert (context[number], number.get()) == (12, 0)

    run_on(any_kind, main())


def test_a_task_is_named_after_what_it_runs_or_as_given(kind: str) -> None:
    async def main() -> None:
        async with handfast.Scope("s") as scope:
            assert scope.spawn(noop()).get_name() == "noop"
            assert scope.spawn(noop(), name="mine").get_name() == "mine"
            assert repr(scope).startswith("<Scope 's' open")

    run_on(kind, main())


class Borrowed(Coroutine[Any, Any, int]):
    """A coroutine that is not the interpreter's own kind, as compiled code makes them."""

    def __init__(self, inner: Coroutine[Any, Any, int]) -> None:
        self.inner = inner
        self.cr_frame = None

    def send(self, value: Any) -> Any:
        return self.inner.send(value)

    def throw(self, *args: Any) -> Any:
        return self.inner.throw(*args)

    def close(self) -> None:
        self.inner.close()

    def __await__(self) -> Any:
        return self.inner.__await__()


def test_a_coroutine_of_another_kind_is_welcome(kind: str) -> None:
    async def one() -> int:
        await asyncio.sleep(0)
        return 1

    async def main() -> int:
        async with handfast.Scope("s") as scope:
            task = scope.spawn(Borrowed(one()))
            assert task.get_name() == "Borrowed"
        return task.result()

    assert run_on(kind, main()) == 1


# --- task factories ------------------------------------------------------------------------


def run_with_factory(factory: Any, main: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.new_event_loop()
    loop.set_task_factory(factory)
    try:
        loop.run_until_complete(main)
    finally:
        loop.close()


def test_a_task_factory_of_the_user_is_respected() -> None:
    class MyTask(asyncio.Task[Any]):
        pass

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> Any:
        return MyTask(coro, loop=loop, **kwargs)

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            assert isinstance(scope.spawn(asyncio.sleep(0)), MyTask)
        assert len(scope) == 0

    run_with_factory(factory, main())


def test_a_factory_that_wraps_once_more_loses_no_task() -> None:
    """A task cancelled before its first step never enters the factory's own wrapper."""

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> Any:
        async def around() -> Any:
            return await coro

        return asyncio.Task(around(), loop=loop, **kwargs)

    async def main() -> None:
        scope = handfast.Scope("s")
        task = scope.spawn(asyncio.sleep(3600))
        task.cancel()
        await asyncio.wait({task})
        assert len(scope) == 0
        other = scope.spawn(asyncio.sleep(0, "value"))
        assert await other == "value"
        assert (await scope.close()).clean

    run_with_factory(factory, main())


def test_a_factory_that_fails_leaves_nothing_behind() -> None:
    broken = False

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> Any:
        if broken:
            raise MemoryError("no more tasks")
        return asyncio.Task(coro, loop=loop, **kwargs)

    async def main() -> None:
        nonlocal broken
        scope = handfast.Scope("s")
        broken = True
        with pytest.raises(MemoryError):
            scope.spawn(asyncio.sleep(0))
        broken = False
        assert len(scope) == 0
        assert (await scope.close()).clean

    run_with_factory(factory, main())


@pytest.mark.parametrize("kind", ["eager"])
def test_an_eager_child_that_ends_at_once_is_not_kept(kind: str) -> None:
    """#128550, #128588."""
    if not hasattr(asyncio, "eager_task_factory"):
        pytest.skip("eager tasks came with Python 3.12")
    loop = new_loop(kind)

    async def at_once(scope: handfast.Scope) -> int:
        assert len(scope) == 1
        assert scope.tasks == (asyncio.current_task(),)
        return 3

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            task = scope.spawn(at_once(scope))
            assert task.done()
            assert len(scope) == 0
            assert not scope._registry.wrappers
        assert task.result() == 3

    loop.run_until_complete(main())
    loop.close()


@pytest.mark.parametrize("kind", ["eager"])
def test_an_eager_child_that_fails_at_once_interrupts_the_body(kind: str) -> None:
    if not hasattr(asyncio, "eager_task_factory"):
        pytest.skip("eager tasks came with Python 3.12")

    async def at_once() -> None:
        raise ValueError("boom")

    async def main() -> None:
        with pytest.raises(ExceptionGroup) as caught:
            async with handfast.Scope("s") as scope:
                lazy = scope.spawn(asyncio.sleep(3600))
                scope.spawn(at_once())
                await asyncio.sleep(3600)
        assert lazy.cancelled()
        assert [repr(error) for error in caught.value.exceptions] == ["ValueError('boom')"]

    run_on(kind, main())


@pytest.mark.parametrize("kind", ["eager"])
def test_an_eager_child_of_an_eager_child_is_known_by_its_own_task(kind: str) -> None:
    if not hasattr(asyncio, "eager_task_factory"):
        pytest.skip("eager tasks came with Python 3.12")

    async def inner(scope: handfast.Scope) -> None:
        assert asyncio.current_task() in scope.tasks
        assert len(set(scope.tasks)) == 2
        raise ValueError("inner")

    async def outer(scope: handfast.Scope) -> None:
        scope.spawn(inner(scope))
        await asyncio.sleep(3600)

    async def main() -> None:
        scope = handfast.Scope("s", on_failure="cancel")
        task = scope.spawn(outer(scope))
        report = await scope.close()
        assert task.cancelled()
        assert [ending.name.split(".")[-1] for ending in report.failed] == ["inner"]
        assert [ending.name.split(".")[-1] for ending in report.cancelled] == ["outer"]

    run_on(kind, main())
