"""The hook: what a task knows of its creation, and that nothing else about tasks changes."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import handfast
from handfast import watch
from handfast._census.patch import Patch
from handfast._runtime.scope.tasks.task_creation import TrackedTask
from handfast._watch.recording import places, task_creation
from handfast._watch.recording.places import Place
from handfast._watch.recording.task_creation import created_at, place_of

NEEDS_EAGER = pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")


async def forever() -> None:
    await asyncio.Event().wait()


async def no_op() -> None:
    pass


def function_of(task: Task[Any]) -> str:
    """The function of this file in which a task was created, as the hook knows it."""
    place = place_of(task)
    assert place is not None
    assert place.file.endswith("test_task_creation.py")
    return place.function.rpartition(".")[2]


def line_of(task: Task[Any]) -> int:
    place = place_of(task)
    assert place is not None
    return place.line


def here() -> int:
    """The line of the caller."""
    return sys._getframe(1).f_lineno


@contextmanager
def task_factory(factory: Any) -> Iterator[AbstractEventLoop]:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)
    yield loop
    loop.set_task_factory(None)


# --- ways to create a task -----------------------------------------------------------------------


def by_create_task() -> Task[None]:
    return asyncio.create_task(no_op())


def by_ensure_future() -> Task[None]:
    return asyncio.ensure_future(no_op())


def by_loop() -> Task[None]:
    return asyncio.get_running_loop().create_task(no_op())


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize("create", [by_create_task, by_ensure_future, by_loop])
def test_a_task_knows_the_line_that_created_it(
    create: Callable[[], Task[None]], new_runner: Callable[[], asyncio.Runner]
) -> None:
    async def main() -> None:
        before = asyncio.get_running_loop().time()
        task = create()
        assert function_of(task) == create.__name__
        assert line_of(task) == create.__code__.co_firstlineno + 1
        created = created_at(task)
        assert created is not None
        assert created >= before - 0.001  # uvloop's clock has milliseconds
        await task

    with new_runner() as runner:
        runner.run(main())


@pytest.mark.usefixtures("hook")
def test_task_groups_and_gather_are_looked_through(
    new_runner: Callable[[], asyncio.Runner],
) -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            task, line = group.create_task(no_op()), here()
        assert line_of(task) == line
        waiting, line = asyncio.gather(no_op()), here()
        (child,) = asyncio.all_tasks() - {asyncio.current_task()}
        assert line_of(child) == line
        await waiting

    with new_runner() as runner:
        runner.run(main())


@pytest.mark.usefixtures("hook")
def test_the_main_task_is_placed_at_the_line_that_runs_it() -> None:
    async def main() -> tuple[str, int]:
        task = asyncio.current_task()
        assert task is not None
        return function_of(task), line_of(task)

    assert asyncio.run(main()) == (
        "test_the_main_task_is_placed_at_the_line_that_runs_it",
        here() - 2,
    )


@pytest.mark.usefixtures("hook")
def test_a_task_that_asyncio_creates_in_a_callback_is_placed_at_its_coroutine(
    new_runner: Callable[[], asyncio.Runner],
) -> None:
    found: list[Place | None] = []

    async def called() -> None:
        task = asyncio.current_task()
        assert task is not None
        found.append(place_of(task))

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def submit() -> None:
            asyncio.run_coroutine_threadsafe(called(), loop).result()

        await asyncio.to_thread(submit)

    with new_runner() as runner:
        runner.run(main())
    (place,) = found
    assert place is not None
    assert (place.line, place.function) == (
        called.__code__.co_firstlineno,
        called.__qualname__,
    )


@pytest.mark.usefixtures("hook")
def test_tasks_of_a_scope_have_the_line_of_their_spawn() -> None:
    async def main() -> None:
        async with handfast.Scope() as scope:
            task, line = scope.spawn(no_op()), here()
            assert isinstance(task, TrackedTask)
            assert line_of(task) == line
            assert created_at(task) is not None
            future = await asyncio.to_thread(submit, scope)
            assert await asyncio.wrap_future(future) == submit.__code__.co_firstlineno + 1

    def submit(scope: handfast.Scope) -> Any:
        return scope.submit(own_line)

    async def own_line() -> int:
        await asyncio.sleep(0)  # it has started eagerly
        task = asyncio.current_task()
        assert task is not None
        return line_of(task)

    asyncio.run(main())


# --- task factories ------------------------------------------------------------------------------


@pytest.mark.usefixtures("hook")
def test_a_task_factory_of_the_program_stays_and_its_tasks_are_recorded(
    new_runner: Callable[[], asyncio.Runner],
) -> None:
    made: list[Task[Any]] = []

    def factory(loop: AbstractEventLoop, coro: Any, **options: Any) -> Task[Any]:
        made.append(asyncio.Task(coro, loop=loop, **options))
        return made[-1]

    async def main() -> None:
        with task_factory(factory) as loop:
            task, line = asyncio.create_task(no_op(), name="own"), here()
            assert loop.get_task_factory() is factory
            assert made == [task]
            assert task.get_name() == "own"
            assert line_of(task) == line
            await task

    with new_runner() as runner:
        runner.run(main())


@pytest.mark.usefixtures("hook")
@pytest.mark.usefixtures("hook")
def test_other_tasks_than_asyncios_own_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """As nest_asyncio has them, since tasks written in C cannot run inside each other."""
    kind = asyncio.tasks._PyTask  # type: ignore[attr-defined]

    async def main() -> Place | None:
        monkeypatch.setattr(asyncio.tasks, "Task", kind)
        task = asyncio.get_running_loop().create_task(asyncio.sleep(0))
        monkeypatch.undo()
        assert type(task) is kind
        await task
        return place_of(task)

    place = asyncio.run(main())
    assert place is not None
    assert place.function.endswith("main")


def test_a_factory_may_return_what_takes_no_attributes() -> None:
    class Closed:
        __slots__ = ()

        def set_name(self, name: object) -> None:
            pass

    closed = Closed()

    def factory(loop: AbstractEventLoop, coro: Any, **_: Any) -> Any:
        coro.close()
        return closed

    async def main() -> list[int]:
        counts = []
        for _ in range(2):
            with task_factory(factory) as loop:
                made: object = loop.create_task(no_op())
                assert made is closed
            created = [each.created for each in places.all_places() if each.function == name]
            counts.append(sum(created))
        return counts

    name = main.__qualname__
    assert asyncio.run(main()) == [0, 0]


@pytest.mark.usefixtures("hook")
def test_a_factory_of_a_class_with_its_own_setattr() -> None:
    class Strict(asyncio.Task[Any]):
        def __setattr__(self, name: str, value: object) -> None:
            assert not name.startswith("_handfast")
            super().__setattr__(name, value)

    async def main() -> None:
        with task_factory(lambda loop, coro, **_: Strict(coro, loop=loop)):
            task = asyncio.create_task(no_op())
            assert function_of(task) == "main"
            await task

    asyncio.run(main())


@NEEDS_EAGER
@pytest.mark.usefixtures("hook")
def test_eager_tasks_are_recorded_and_stay_eager(
    new_runner: Callable[[], asyncio.Runner],
) -> None:
    steps: list[str] = []

    async def work() -> None:
        steps.append("first step")
        await asyncio.sleep(0)

    async def main() -> None:
        with task_factory(getattr(asyncio, "eager_task_factory")) as loop:  # noqa: B009
            task, line = loop.create_task(work(), name="own"), here()
            steps.append("created")
            assert line_of(task) == line
            assert task.get_name() == "own"
            await task
            ended, line = loop.create_task(no_op()), here()
            assert ended.done()
            assert line_of(ended) == line

    with new_runner() as runner:
        runner.run(main())
    assert steps == ["first step", "created"]


# --- what stays as it was ------------------------------------------------------------------------


def unread_error() -> list[str]:
    """What is logged for a task whose error no one has read."""
    messages: list[str] = []

    async def fails() -> None:
        raise ValueError("unread")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: messages.append(context["message"]))
        task = asyncio.create_task(fails())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task
        gc.collect()

    asyncio.run(main())
    return messages


@pytest.mark.usefixtures("small_heap")
def test_an_error_that_no_one_reads_is_logged_as_without_the_watch() -> None:
    without = unread_error()
    task_creation.switch_on()
    try:
        assert unread_error() == without == ["Task exception was never retrieved"]
    finally:
        task_creation.switch_off()


def shown_task() -> tuple[str, str, type]:
    async def main() -> tuple[str, str, type]:
        task = asyncio.create_task(forever(), name="shown")
        await asyncio.sleep(0)
        text = repr(task)
        task.cancel()
        return text.partition(" wait_for")[0], type(task).__module__, type(task).__base__ or object

    return asyncio.run(main())


@pytest.mark.usefixtures("hook")
def test_a_task_looks_as_it_does_without_the_watch() -> None:
    text, module, base = shown_task()
    task_creation.switch_off()
    plain, plain_module, _ = shown_task()
    assert (text, module) == (plain, plain_module)
    assert issubclass(base, asyncio.Task)


@pytest.mark.usefixtures("hook")
def test_debug_mode_shows_where_a_task_was_created(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        task, line = asyncio.create_task(no_op()), here()
        stack = getattr(task, "_source_traceback")  # noqa: B009
        assert stack[-1].lineno == line or stack[-2].lineno == line
        await task
        return len(stack)

    with caplog.at_level(logging.CRITICAL):
        watched = asyncio.run(main(), debug=True)
        task_creation.switch_off()
        assert asyncio.run(main(), debug=True) == watched


@pytest.mark.usefixtures("hook")
def test_a_closed_loop_refuses_a_task(new_runner: Callable[[], asyncio.Runner]) -> None:
    with new_runner() as runner:
        loop = runner.get_loop()
    coro = no_op()
    with pytest.raises(RuntimeError, match="closed"):
        loop.create_task(coro)
    coro.close()


@pytest.mark.usefixtures("hook")
def test_what_is_no_coroutine_is_refused_as_ever() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="coroutine"):
            asyncio.get_running_loop().create_task(3)  # type: ignore[arg-type]

    asyncio.run(main())


# --- on and off ----------------------------------------------------------------------------------


def test_off_means_that_the_methods_are_asyncios_own() -> None:
    before = asyncio.BaseEventLoop.create_task
    for _ in range(2):
        task_creation.switch_on()
        task_creation.switch_on()
        assert asyncio.BaseEventLoop.create_task is not before
        task_creation.switch_off()
        task_creation.switch_off()
        assert asyncio.BaseEventLoop.create_task is before


def test_another_tool_that_patches_over_the_hook_is_left_alone() -> None:
    before = asyncio.BaseEventLoop.create_task
    calls: list[str] = []

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def create_task(*args: Any, **options: Any) -> Any:
            calls.append("other tool")
            return original(*args, **options)

        return create_task

    async def main() -> Place | None:
        return place_of(asyncio.create_task(no_op()))

    task_creation.switch_on()
    other = Patch(asyncio.BaseEventLoop, "create_task", wrap)
    other.install()
    task_creation.switch_off()
    calls.clear()
    assert asyncio.run(main()) is None, "the hook is buried, and passes the call on"
    assert set(calls) == {"other tool"}
    task_creation.switch_on()
    assert asyncio.run(main()) is not None
    other.uninstall()
    place = asyncio.run(main())
    assert place is not None
    created = place.created
    asyncio.run(main())
    assert place.created == created + 1, "each task is counted once"
    task_creation.switch_off()
    assert asyncio.BaseEventLoop.create_task is before


# --- places --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("hook")
def test_code_made_by_exec_shares_a_place_and_the_table_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "_FULL", 50)
    source = "def create(loop, coro):\n    return loop.create_task(coro)\n"
    found: set[Place | None] = set()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(200):
            namespace: dict[str, Any] = {}
            exec(compile(source, "<generated>", "exec"), namespace)
            task = namespace["create"](loop, no_op())
            found.add(place_of(task))
            await task

    asyncio.run(main())
    (place,) = found
    assert place is not None
    assert (place.file, place.line, place.function) == ("<generated>", 2, "create")
    assert place.created >= 200
    assert len(places.OFFSETS) <= 8192


@pytest.mark.usefixtures("hook")
def test_places_beyond_the_bound_count_as_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MAX_PLACES", 0)
    before = places.OTHER.created

    async def main() -> Task[None]:
        task = asyncio.create_task(no_op())
        await task
        return task

    task = asyncio.run(main())
    assert place_of(task) is places.OTHER
    assert places.OTHER.created > before
    assert places.OTHER in places.all_places()


@pytest.mark.usefixtures("hook")
def test_threads_count_every_task() -> None:
    each, threads = 500, 4

    async def main() -> None:
        for _ in range(each):
            await asyncio.create_task(no_op())

    def run() -> None:
        asyncio.run(main())

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    name = main.__qualname__
    (place,) = (each for each in watch.snapshot(0).places if each.function == name)
    assert place.created == each * threads
    assert (place.alive, place.finished) == (0, each * threads)
