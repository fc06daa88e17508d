"""The threads that run are seen, with where they stand; what nobody can end is left out."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.census import births, owned_by, recording, take, threads
from holdfast.census.thing import Thing
from holdfast.census.threads import ThreadRunning
from tests.runtime.processes import new_loop


@pytest.fixture
def new() -> Callable[[], list[Thing]]:
    """What has come since the test began."""
    before = take(["threads"])
    return lambda: take(["threads"]).since(before)


class Worker:
    """Waits until it is told to end."""

    def __init__(self) -> None:
        self.told = threading.Event()
        self.begun = threading.Event()

    def run(self) -> None:
        self.begun.set()
        self.told.wait()

    @contextmanager
    def at_work(self, thread: threading.Thread) -> Iterator[threading.Thread]:
        thread.start()
        try:
            assert self.begun.wait(60)
            yield thread
        finally:
            self.told.set()
            thread.join()


def test_a_process_with_one_thread_has_none_to_tell_of() -> None:
    named = {thing.key for thing in take(["threads"]).things}
    assert ("thread", id(threading.main_thread())) not in named


@pytest.mark.parametrize("daemon", [False, True])
def test_a_running_thread_is_seen_with_what_it_runs_and_where_it_stands(
    daemon: bool, new: Callable[[], list[Thing]]
) -> None:
    worker = Worker()
    with worker.at_work(threading.Thread(target=worker.run, name="w", daemon=daemon)):
        (thing,) = new()
        assert thing.code == "HF711"
        assert thing.what == f"thread 'w'{' (daemon)' if daemon else ''} running Worker.run"
        assert [line.rpartition(" ")[2] for line in thing.stands()] == ["Worker.run"]
        assert thing.birth is None
        assert (thing.part_of, thing.passing, thing.over()) == (None, False, False)
        assert [again.key for again in new()] == [thing.key]
    assert thing.over()
    assert thing.code == "HF711"
    assert thing.stands() == ()
    assert new() == []


def test_a_thread_is_born_where_it_was_started_and_belongs_to_whoever_did(
    new: Callable[[], list[Thing]],
) -> None:
    worker = Worker()
    thread = threading.Thread(target=worker.run)
    try:
        with recording(), owned_by("the test"):
            thread.start()  # here
        (thing,) = new()
        assert thing.birth is not None
        assert thing.birth.origin.source == "thread.start()  # here"
        assert thing.birth.owner == "the test"
    finally:
        worker.told.set()
        thread.join()


def test_what_is_born_in_a_thread_belongs_to_the_owner_of_the_thread() -> None:
    go = threading.Event()
    owners: list[object] = []

    def inner() -> None:
        owners.append(births.owner_now())

    def outer() -> None:
        assert go.wait(60)
        owners.append(births.owner_now())
        thread = threading.Thread(target=inner)
        thread.start()
        thread.join()

    with recording():
        thread = threading.Thread(target=outer)
        with owned_by("first"):
            thread.start()
        with owned_by("second"):
            go.set()
            thread.join()
    assert owners == ["first", "first"]


def test_a_thread_inside_threading_alone_stands_there(new: Callable[[], list[Thing]]) -> None:
    told = threading.Event()
    thread = threading.Thread(target=told.wait)
    with recording():
        thread.start()
    try:
        (thing,) = new()
        assert thing.what.endswith("running Event.wait")
        assert thing.stands()
        assert all("threading.py:" in line for line in thing.stands())
    finally:
        told.set()
        thread.join()


def test_a_thread_runs_its_target_its_own_run_or_what_a_partial_holds(
    new: Callable[[], list[Thing]],
) -> None:
    class Own(threading.Thread):
        def __init__(self, worker: Worker) -> None:
            super().__init__()
            self.worker = worker

        def run(self) -> None:
            self.worker.run()

    def of_a_partial(worker: Worker) -> threading.Thread:
        return threading.Thread(target=functools.partial(Worker.run, worker))

    def of_a_callable(worker: Worker) -> threading.Thread:
        return threading.Thread(target=Called(worker))

    makers: dict[str, Callable[[Worker], threading.Thread]] = {
        Own.run.__qualname__: Own,
        "Worker.run": of_a_partial,
        "Called": of_a_callable,
    }
    for name, make in makers.items():
        worker = Worker()
        with worker.at_work(make(worker)):
            (thing,) = new()
            assert thing.what.endswith(f" running {name}")


class Called:
    """Something with no name of its own to run."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def __call__(self) -> None:
        self.worker.run()


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self, kind: str) -> None:
        self.begun: Future[None] = Future()
        self.loop = new_loop(kind)
        self.thread = threading.Thread(target=self.serve, name="loop", daemon=True)

    def serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.forever())

    async def forever(self) -> None:
        self.told = self.loop.create_future()
        self.begun.set_result(None)
        await self.told

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.told.set_result, None)
        self.thread.join()
        self.loop.close()


def test_a_thread_with_an_event_loop_is_told_as_one(
    kind: str, new: Callable[[], list[Thing]]
) -> None:
    with recording():
        left = LoopThread(kind)
        left.thread.start()
        try:
            left.begun.result(60)
            (thing,) = [thing for thing in new() if isinstance(thing, ThreadRunning)]
            assert thing.code == "HF424"
            assert thing.what == "thread 'loop' (daemon) running an event loop"
            assert any(line.endswith(" in LoopThread.serve") for line in thing.stands())
        finally:
            left.end()
    assert thing.over()


def test_a_function_that_is_only_called_run_forever_is_no_event_loop(
    new: Callable[[], list[Thing]],
) -> None:
    worker = Worker()

    class Pump:
        def run_forever(self) -> None:
            worker.run()

    with worker.at_work(threading.Thread(target=Pump().run_forever)):
        (thing,) = new()
        assert thing.code == "HF711"


def test_what_asyncio_and_the_test_runner_keep_for_themselves_is_left_out(
    new: Callable[[], list[Thing]],
) -> None:
    for name in ("waitpid-3", "asyncio-waitpid-0", "pytest_timeout tests/test_x.py::test_y"):
        worker = Worker()
        with worker.at_work(threading.Thread(target=worker.run, name=name, daemon=True)):
            assert new() == []


def test_the_threads_of_a_debugger_are_left_out(new: Callable[[], list[Thing]]) -> None:
    class PyDBDaemonThread(threading.Thread):
        pass

    PyDBDaemonThread.__module__ = "_pydevd_bundle.pydevd_daemon_thread"
    worker = Worker()
    with worker.at_work(PyDBDaemonThread(target=worker.run, daemon=True)):
        assert new() == []


def test_the_worker_threads_of_anyio_are_left_out(new: Callable[[], list[Thing]]) -> None:
    to_thread: Any = pytest.importorskip("anyio.to_thread")

    async def main() -> None:
        await to_thread.run_sync(int)
        assert any(type(t).__name__ == "WorkerThread" for t in threading.enumerate())
        assert new() == []

    asyncio.run(main())


def test_a_thread_unknown_to_threading_is_out_of_sight(new: Callable[[], list[Thing]]) -> None:
    import _thread

    told, begun, ended = threading.Event(), threading.Event(), threading.Event()

    def bare() -> None:
        threading.current_thread()  # now threading has a dummy for it
        begun.set()
        told.wait()
        ended.set()

    _thread.start_new_thread(bare, ())
    try:
        assert begun.wait(60)
        assert new() == []
    finally:
        told.set()
        assert ended.wait(60)


def test_a_thread_that_is_about_to_begin_is_not_over() -> None:
    thread = threading.Thread(target=int)
    assert not ThreadRunning(thread).over()


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there threads have a context themselves")
@pytest.mark.parametrize("entered", [False, True])
def test_a_thread_that_runs_in_a_context_of_its_own_is_given_its_owner_there(entered: bool) -> None:
    import contextvars

    thread: Any = threading.Thread(target=int)
    thread._context = contextvars.copy_context()

    def give() -> None:
        threads._hand_down(thread, "owner")

    if entered:
        thread._context.run(give)
    else:
        give()
    assert thread._context.get(births.OWNER) == (None if entered else "owner")
    assert births.OWNER.get() is None


def test_after_the_recording_everything_is_as_it_was() -> None:
    kinds: Any = threading.Thread
    before = (kinds.start, kinds._bootstrap_inner)
    with recording():
        assert kinds.start is not before[0]
        assert kinds._bootstrap_inner is not before[1]
    assert (kinds.start, kinds._bootstrap_inner) == before
