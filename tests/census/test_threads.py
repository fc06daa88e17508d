"""Running threads (HF711, HF424) are listed, with where they wait."""

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

from handfast._census import creation_log, owned_by, recording, take
from handfast._census.kinds import threads
from handfast._census.kinds.threads import live_thread
from handfast._census.live_object import LiveObject
from handfast._leaks.judge import kept_by_no_library
from tests.runtime.process.processes import new_loop


@pytest.fixture
def new() -> Callable[[], list[LiveObject]]:
    """What was started since the test began."""
    before = take(["threads"])
    return lambda: kept_by_no_library(take(["threads"]).since(before))


class Worker:
    """Waits until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.begun = threading.Event()

    def run(self) -> None:
        self.begun.set()
        self.released.wait()

    @contextmanager
    def at_work(self, thread: threading.Thread) -> Iterator[threading.Thread]:
        thread.start()
        try:
            assert self.begun.wait(60)
            yield thread
        finally:
            self.released.set()
            thread.join()


def test_the_main_thread_is_not_listed() -> None:
    named = {live.key for live in take(["threads"]).objects}
    assert ("thread", id(threading.main_thread())) not in named


@pytest.mark.parametrize("daemon", [False, True])
def test_a_running_thread_is_listed_with_what_it_runs_and_where_it_waits(
    daemon: bool, new: Callable[[], list[LiveObject]]
) -> None:
    worker = Worker()
    with worker.at_work(threading.Thread(target=worker.run, name="w", daemon=daemon)):
        (live,) = new()
        assert live.code == "HF711"
        assert live.what == f"thread 'w'{' (daemon)' if daemon else ''} running Worker.run"
        assert [line.rpartition(" ")[2] for line in live.waiting_at()] == ["Worker.run"]
        assert live.creation is None
        assert (live.part_of(), live.ends_by_itself, live.ended()) == (None, False, False)
        assert [again.key for again in new()] == [live.key]
    assert live.ended()
    assert live.code == "HF711"
    assert live.waiting_at() == ()
    assert new() == []


def test_a_thread_has_the_line_and_the_owner_of_its_start(
    new: Callable[[], list[LiveObject]],
) -> None:
    worker = Worker()
    thread = threading.Thread(target=worker.run)
    try:
        with recording(), owned_by("the test"):
            thread.start()  # here
        (live,) = new()
        assert live.creation is not None
        assert live.creation.origin.source == "thread.start()  # here"
        assert live.creation.owner == "the test"
    finally:
        worker.released.set()
        thread.join()


def test_what_is_created_in_a_thread_belongs_to_the_owner_of_the_thread() -> None:
    go = threading.Event()
    owners: list[object] = []

    def inner() -> None:
        owners.append(creation_log.current_owner())

    def outer() -> None:
        assert go.wait(60)
        owners.append(creation_log.current_owner())
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


def test_a_thread_inside_threading_alone_waits_there(new: Callable[[], list[LiveObject]]) -> None:
    released = threading.Event()
    thread = threading.Thread(target=released.wait)
    with recording():
        thread.start()
    try:
        (live,) = new()
        assert live.what.endswith("running Event.wait")
        assert live.waiting_at()
        assert all("threading.py:" in line for line in live.waiting_at())
    finally:
        released.set()
        thread.join()


def test_a_thread_runs_its_target_its_own_run_or_what_a_partial_holds(
    new: Callable[[], list[LiveObject]],
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
            (live,) = new()
            assert live.what.endswith(f" running {name}")


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
        self.released = self.loop.create_future()
        self.begun.set_result(None)
        await self.released

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.released.set_result, None)
        self.thread.join()
        self.loop.close()


def test_a_thread_with_an_event_loop_is_listed_as_one(
    kind: str, new: Callable[[], list[LiveObject]]
) -> None:
    with recording():
        left = LoopThread(kind)
        left.thread.start()
        try:
            left.begun.result(60)
            (live,) = [live for live in new() if live.code != "HF712"]
            assert live.code == "HF424"
            assert live.what == "thread 'loop' (daemon) running an event loop"
            assert any(line.endswith(" in LoopThread.serve") for line in live.waiting_at())
        finally:
            left.end()
    assert live.ended()


def test_a_function_that_is_only_called_run_forever_is_no_event_loop(
    new: Callable[[], list[LiveObject]],
) -> None:
    worker = Worker()

    class Pump:
        def run_forever(self) -> None:
            worker.run()

    with worker.at_work(threading.Thread(target=Pump().run_forever)):
        (live,) = new()
        assert live.code == "HF711"


def test_threads_of_asyncio_and_pytest_timeout_belong_to_a_library(
    new: Callable[[], list[LiveObject]],
) -> None:
    for name in ("waitpid-3", "asyncio-waitpid-0", "pytest_timeout tests/test_x.py::test_y"):
        worker = Worker()
        with worker.at_work(threading.Thread(target=worker.run, name=name, daemon=True)):
            assert new() == []


def test_an_idle_thread_of_trio_belongs_to_a_library(new: Callable[[], list[LiveObject]]) -> None:
    trio = pytest.importorskip("trio")
    assert trio.run(trio.to_thread.run_sync, threading.get_ident) != threading.get_ident()
    assert any(thread.name.startswith("Trio thread ") for thread in threading.enumerate())
    assert new() == []


def test_the_threads_of_a_debugger_belong_to_a_library(new: Callable[[], list[LiveObject]]) -> None:
    class PyDBDaemonThread(threading.Thread):
        pass

    PyDBDaemonThread.__module__ = "_pydevd_bundle.pydevd_daemon_thread"
    worker = Worker()
    with worker.at_work(PyDBDaemonThread(target=worker.run, daemon=True)):
        assert new() == []


def test_the_worker_threads_of_anyio_belong_to_a_library(
    new: Callable[[], list[LiveObject]],
) -> None:
    to_thread: Any = pytest.importorskip("anyio.to_thread")

    async def main() -> None:
        await to_thread.run_sync(int)
        assert any(type(t).__name__ == "WorkerThread" for t in threading.enumerate())
        assert new() == []

    asyncio.run(main())


def test_a_thread_that_threading_did_not_start_is_not_listed(
    new: Callable[[], list[LiveObject]],
) -> None:
    import _thread

    released, begun, ended = threading.Event(), threading.Event(), threading.Event()

    def bare() -> None:
        threading.current_thread()  # now threading has a dummy for it
        begun.set()
        released.wait()
        ended.set()

    _thread.start_new_thread(bare, ())
    try:
        assert begun.wait(60)
        assert new() == []
    finally:
        released.set()
        assert ended.wait(60)


def test_a_thread_that_is_about_to_start_has_not_ended() -> None:
    thread = threading.Thread(target=int)
    assert not live_thread(thread).ended()


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there threads have a context themselves")
@pytest.mark.parametrize("entered", [False, True])
def test_the_owner_is_set_in_the_context_of_a_thread(entered: bool) -> None:
    import contextvars

    thread: Any = threading.Thread(target=int)
    thread._context = contextvars.copy_context()
    with owned_by("owner"):
        creation_log.record(thread, 0)

    def give() -> None:
        threads._set_owner(thread)

    if entered:
        thread._context.run(give)
    else:
        give()
    assert thread._context.get(creation_log.OWNER) == (None if entered else "owner")
    assert creation_log.OWNER.get() is None


def test_after_the_recording_the_originals_are_restored() -> None:
    kinds: Any = threading.Thread
    before = (kinds.start, kinds._bootstrap_inner)
    with recording():
        assert kinds.start is not before[0]
        assert kinds._bootstrap_inner is not before[1]
    assert (kinds.start, kinds._bootstrap_inner) == before
