"""An executor that is not shut down is one thing; its threads and processes are part of it."""

from __future__ import annotations

import asyncio
import concurrent.futures.process
import gc
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

from holdfast.census import births, executors, owned_by, recording, take
from holdfast.census.executors import ExecutorOpen
from holdfast.census.thing import Thing
from tests.runtime.processes import new_loop


@pytest.fixture
def new() -> Callable[[], list[Thing]]:
    """What has come since the test began."""
    before = take(["threads"])
    return lambda: take(["threads"]).since(before)


@pytest.fixture
def spawning() -> Any:
    """multiprocessing, but not by fork: this process has threads. Its resource tracker stays for
    as long as this process, since semaphores may still come to be collected at any time."""
    return multiprocessing.get_context("spawn")


class Work:
    """Something for a thread to do until it is told to end."""

    def __init__(self) -> None:
        self.told = threading.Event()
        self.begun = threading.Event()

    def do(self) -> None:
        self.begun.set()
        self.told.wait()


def come(wanted: Callable[[], bool]) -> None:
    """Wait for something that comes by itself."""
    deadline = time.monotonic() + 60
    while not wanted() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert wanted()


def test_an_executor_is_one_thing_with_its_birth_and_its_threads_are_none(
    new: Callable[[], list[Thing]],
) -> None:
    work = Work()
    with recording(), owned_by("the test"):
        executor = ThreadPoolExecutor(2, "pool")  # here
    try:
        assert new() == []  # no workers yet
        executor.submit(work.do)
        executor.submit(work.do)
        (thing,) = new()
        assert thing.code == "HF712"
        assert thing.what == "ThreadPoolExecutor 'pool' with 2 threads, not shut down"
        assert thing.birth is not None
        assert thing.birth.origin.source == 'executor = ThreadPoolExecutor(2, "pool")  # here'
        assert thing.birth.owner == "the test"
        assert (thing.stands(), thing.part_of, thing.passing) == ((), None, False)
        assert not thing.over()
        assert [again.key for again in new()] == [thing.key]
    finally:
        work.told.set()
        executor.shutdown()
    assert thing.over()
    assert thing.what == "ThreadPoolExecutor 'pool', not shut down"
    assert new() == []


def test_an_executor_without_a_birth_is_born_where_it_got_its_first_work(
    new: Callable[[], list[Thing]],
) -> None:
    with ThreadPoolExecutor(1) as executor:
        with recording():
            executor.submit(int).result()  # here
        (thing,) = new()
        assert thing.what == "ThreadPoolExecutor with 1 thread, not shut down"
        assert thing.birth is not None
        assert thing.birth.origin.source == "executor.submit(int).result()  # here"


def test_two_executors_at_one_address_are_two_things(new: Callable[[], list[Thing]]) -> None:
    keys: set[Hashable] = set()
    for _ in range(5):
        with ThreadPoolExecutor(1) as executor:
            executor.submit(int).result()
            keys.update(thing.key for thing in new())
        del executor
    assert len(keys) == 5


def test_an_executor_of_processes_is_one_thing(
    new: Callable[[], list[Thing]], spawning: Any
) -> None:
    with recording():
        executor = ProcessPoolExecutor(1, mp_context=spawning)  # here
    try:
        assert executor.submit(abs, -1).result() == 1
        (thing,) = new()
        assert thing.code == "HF712"
        assert thing.what == "ProcessPoolExecutor with 1 process, not shut down"
        assert thing.birth is not None
        assert thing.birth.origin.source.endswith("# here")
    finally:
        executor.shutdown()
    assert thing.over()
    assert new() == []


def test_an_executor_of_processes_loaded_late_is_born_where_it_got_its_first_work(
    new: Callable[[], list[Thing]], spawning: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["concurrent.futures.process"]
    with monkeypatch.context() as unloaded:
        unloaded.delitem(sys.modules, "concurrent.futures.process")
        assert executors.managers() == []
        recorder = recording()
        recorder.__enter__()
    try:
        with concurrent.futures.process.ProcessPoolExecutor(1, mp_context=spawning) as executor:
            assert sys.modules["concurrent.futures.process"] is module
            executor.submit(abs, -1).result()  # here
            (thing,) = new()
            assert thing.birth is not None
            assert thing.birth.origin.source == "executor.submit(abs, -1).result()  # here"
    finally:
        recorder.__exit__(None, None, None)


def test_a_thread_at_work_for_an_executor_that_was_shut_down_is_a_thread(
    new: Callable[[], list[Thing]],
) -> None:
    work = Work()
    executor = ThreadPoolExecutor(1, "pool")
    executor.submit(work.do)
    try:
        assert work.begun.wait(60)
        (before,) = new()
        executor.shutdown(wait=False)
        (thing,) = new()
        assert before.over()
        assert (thing.code, thing.passing) == ("HF711", False)
        assert thing.what == "thread 'pool_0' running _worker"
        assert thing.stands()[-1].endswith(" in Work.do")
    finally:
        work.told.set()
        executor.shutdown()
    assert thing.over()


def test_the_idle_threads_of_an_executor_that_was_dropped_pass(
    new: Callable[[], list[Thing]],
) -> None:
    executor = ThreadPoolExecutor(1)
    executor.submit(int).result()
    (thing,) = new()
    assert isinstance(thing, ExecutorOpen)
    del executor
    gc.collect()
    # A census keeps no executor alive, and what is left of it is on its way out.
    assert thing.over()
    assert thing.what == "ThreadPoolExecutor, not shut down"
    come(lambda: all(left.passing for left in new()))
    come(lambda: not new())


def test_the_default_executor_of_a_loop_is_the_loops(
    kind: str, new: Callable[[], list[Thing]]
) -> None:
    loop = new_loop(kind)
    try:
        loop.run_until_complete(asyncio.to_thread(int))
        assert new() == []
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def test_an_executor_given_to_a_loop_is_the_loops(
    kind: str, new: Callable[[], list[Thing]]
) -> None:
    loop = new_loop(kind)
    try:
        with recording(), ThreadPoolExecutor(1, "given") as executor:
            loop.set_default_executor(executor)
            loop.run_until_complete(asyncio.to_thread(int))
            assert new() == []
    finally:
        loop.close()


def test_an_executor_given_to_a_loop_unseen_is_found_through_the_tasks_of_the_loop(
    new: Callable[[], list[Thing]],
) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1, "given") as executor:
            asyncio.get_running_loop().set_default_executor(executor)
            await asyncio.to_thread(int)
            assert new() == []

    asyncio.run(main())


def test_an_executor_of_ones_own_beside_the_loop_is_told(new: Callable[[], list[Thing]]) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1, "own") as executor:
            await asyncio.get_running_loop().run_in_executor(executor, int)
            (thing,) = new()
            assert thing.code == "HF712"

    asyncio.run(main())


def test_what_is_born_in_a_worker_belongs_to_the_phase_in_which_it_works() -> None:
    with recording(), ThreadPoolExecutor(1) as executor:
        with owned_by("first"):
            assert executor.submit(births.owner_now).result() == "first"
        with owned_by("second"):
            assert executor.submit(births.owner_now).result() == "second"


def test_an_executor_that_is_older_than_the_recording_belongs_to_nobody() -> None:
    with ThreadPoolExecutor(max_workers=1) as executor:
        with recording(), owned_by("a test"):
            executor.submit(int).result()
            (found,) = [thing for thing in take(["threads"]).things if thing.code == "HF712"]
        assert found.birth is not None
        assert found.owner is None
