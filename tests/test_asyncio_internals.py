"""The private names of asyncio: what is seen with them, and what is said without them."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import warnings
from asyncio import AbstractEventLoop, Task, selector_events
from collections.abc import Callable, Coroutine
from typing import Any
from unittest import mock

import pytest

import handfast
from handfast import _asyncio_internals as internals
from handfast._census import recording, take
from handfast.leaks import no_leaks


async def forever() -> None:
    await asyncio.Event().wait()


def in_a_thread(call: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


def made_elsewhere(loop: AbstractEventLoop) -> Task[None]:
    """A task of `loop` that another thread has made."""
    return in_a_thread(lambda: loop.create_task(forever(), name="foreign"))  # type: ignore[no-any-return]


def names(found: Any) -> set[str]:
    return {thing.target.get_name() for thing in found.objects}


# --- coroutine functions -----------------------------------------------------------------------


def test_what_has_to_be_awaited_says_so() -> None:
    """Starlette awaits an `on_shutdown` handler only then."""
    scope, keyed = handfast.Scope, handfast.KeyedTasks
    functions = [scope.close, scope.aclose, scope.start, keyed.close, keyed.cancel]
    functions += [keyed.replace, keyed.share, keyed.enqueue, handfast.race, handfast.shielded]
    is_coroutine_function = (
        inspect.iscoroutinefunction if sys.version_info >= (3, 12) else asyncio.iscoroutinefunction
    )
    assert [each for each in functions if not is_coroutine_function(each)] == []


# --- tasks -------------------------------------------------------------------------------------


def test_a_task_that_another_thread_made_is_pending_on_the_running_loop() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = made_elsewhere(loop)
        assert task in internals.pending_tasks(loop)
        assert asyncio.get_running_loop() is loop
        assert "foreign" in names(take(["tasks"]))
        task.cancel()

    asyncio.run(main())


def test_run_ends_a_task_that_another_thread_made() -> None:
    ended = []

    async def work() -> None:
        try:
            await forever()
        finally:
            ended.append("work")

    async def main() -> Task[None]:
        loop = asyncio.get_running_loop()
        task: Task[None] = in_a_thread(lambda: loop.create_task(work()))
        await asyncio.sleep(0.01)
        return task

    assert handfast.run(main).cancelled()
    assert ended == ["work"]


def test_run_gives_its_grace_to_a_task_that_another_thread_made() -> None:
    async def main() -> Task[str]:
        loop = asyncio.get_running_loop()
        task: Task[str] = in_a_thread(lambda: loop.create_task(asyncio.sleep(0.05, "done")))
        await asyncio.sleep(0)
        return task

    assert handfast.run(main, grace=5.0).result() == "done"


@pytest.mark.parametrize("recorded", [True, False])
def test_pending_tasks_are_found_on_loops_of_every_state(recorded: bool) -> None:
    """Running in another thread, stopped, and closed; with and without a record of creations."""
    before = [asyncio.new_event_loop() for _ in range(3)]
    running, stopped, closed = before

    async def start(name: str) -> Task[None]:
        task = asyncio.create_task(forever(), name=name)
        await asyncio.sleep(0)
        return task

    def leave() -> list[Task[None]]:
        kept = [asyncio.run_coroutine_threadsafe(start("running"), running).result()]
        kept += [stopped.run_until_complete(start("stopped"))]
        kept += [closed.run_until_complete(start("closed"))]
        closed.close()
        return kept

    thread = threading.Thread(target=running.run_forever)
    thread.start()
    try:
        if recorded:
            with recording():
                kept = leave()
                found = names(take(["tasks"]))
        else:
            kept = leave()
            found = names(take(["tasks"]))
        assert found >= {"running", "stopped", "closed"}
        assert "stopped" in names(take(["tasks"], loop=stopped))
        assert "running" not in names(take(["tasks"], loop=stopped))
    finally:
        running.call_soon_threadsafe(running.stop)
        thread.join()
        for task in kept:
            internals.mute_destroyed_warning(task)
        for loop in before:
            loop.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are no eager tasks")
def test_an_eager_task_is_found_pending_and_ended() -> None:
    async def fail() -> None:
        raise ValueError("eager")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009
        pending, failed = loop.create_task(forever(), name="eager"), loop.create_task(fail())
        assert "eager" in names(take(["tasks"]))
        assert [thing.code for thing in take(["errors"], loop=loop).objects] == ["HF601"]
        pending.cancel()
        failed.exception()

    with recording():
        asyncio.run(main())


def test_a_hidden_task_is_in_no_census_pending_or_ended() -> None:
    async def fail() -> None:
        raise ValueError

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(fail(), name="hidden")
        internals.unregister_task(task)
        assert "hidden" not in names(take(["tasks"], loop=loop))
        await asyncio.wait([task])
        assert take(["errors"], loop=loop).objects == ()
        task.exception()

    with recording():
        asyncio.run(main())


def narrow(loop: AbstractEventLoop, coro: Coroutine[Any, Any, Any]) -> Task[Any]:
    """A task factory from before `name` was passed on."""
    return Task(coro, loop=loop)


def test_a_task_factory_need_not_take_a_name() -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(narrow)  # type: ignore[arg-type]
        async with handfast.Scope() as scope:
            task = scope.spawn(asyncio.sleep(0), name="named")
        other = internals.create_named_task(loop, asyncio.sleep(0), "other")
        await other
        return [task.get_name(), other.get_name()]

    assert handfast.run(main) == ["named", "other"]


# --- a Python that nobody has tested -----------------------------------------------------------


@pytest.fixture
def untested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internals, "TESTED_PYTHONS", ((3, 10),))
    monkeypatch.setattr(internals, "_warned", False)


def test_a_newer_python_than_the_tested_ones_has_a_message() -> None:
    assert internals.untested_python() is None
    assert internals.untested_python((3, 15)) is None
    message = internals.untested_python((3, 16))
    assert message is not None
    assert message.startswith("Python 3.16 is newer than the newest tested version, 3.15")


@pytest.mark.usefixtures("untested")
def test_a_block_on_an_untested_python_warns_once() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            with no_leaks():
                pass
    assert [each.category for each in seen] == [internals.UntestedPythonWarning]
    assert seen[0].filename == __file__


@pytest.mark.usefixtures("untested")
def test_stress_on_an_untested_python_says_so() -> None:
    async def program() -> None:
        await asyncio.sleep(0)

    report = handfast.leaks.stress(program, n=10)
    assert any("newer than the newest tested version" in spot for spot in report.not_checked)


def test_a_check_without_a_name_that_it_reads_is_reported_as_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checks = ["tasks", "errors", "timers", "generators", "connections"]
    assert take(checks).not_checked == ()
    monkeypatch.delattr(selector_events, "_SelectorTransport")
    python = ".".join(map(str, sys.version_info[:2]))
    spot = f"connections, in part: Python {python} has no _SelectorTransport"
    assert take(checks).not_checked == (spot,)
    with no_leaks() as watched:
        pass
    assert watched.not_checked == (spot,)


def test_a_task_stays_visible_where_it_cannot_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(asyncio, "_unregister_task")

    async def main() -> None:
        task = asyncio.create_task(forever())
        internals.unregister_task(task)
        assert not internals.is_hidden(task)
        assert task in asyncio.all_tasks()
        task.cancel()

    asyncio.run(main())


def test_a_loop_whose_selector_is_a_mock_watches_nothing() -> None:
    """As in the tests of aiostream, which every test would fail of otherwise."""
    loop = asyncio.new_event_loop()
    selector = loop._selector  # type: ignore[attr-defined]
    assert len(internals.watched_handles(loop)) == 1  # the pipe that wakes it
    loop._selector = mock.Mock(selector)  # type: ignore[attr-defined]
    assert internals.watched_handles(loop) == []
    loop._selector = selector  # type: ignore[attr-defined]
    loop.close()
