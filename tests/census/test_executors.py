"""An executor that is not shut down is one object; its threads and processes are part of it."""

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

from handfast._census import creation_log, executors, owned_by, recording, take
from handfast._census.live_object import LiveObject
from handfast._leaks.judge import kept_by_no_library
from tests.runtime.process.processes import new_loop


@pytest.fixture
def new() -> Callable[[], list[LiveObject]]:
    """What was started since the test began."""
    before = take(["threads"])
    return lambda: kept_by_no_library(take(["threads"]).since(before))


@pytest.fixture
def spawning() -> Any:
    """multiprocessing, but not by fork: this process has threads. Its resource tracker stays for
    as long as this process, since semaphores may still come to be collected at any time."""
    return multiprocessing.get_context("spawn")


class Work:
    """Work for a thread until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.begun = threading.Event()

    def do(self) -> None:
        self.begun.set()
        self.released.wait()


def come(wanted: Callable[[], bool]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + 60
    while not wanted() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert wanted()


def test_an_executor_is_listed_and_its_threads_are_not(
    new: Callable[[], list[LiveObject]],
) -> None:
    work = Work()
    with recording(), owned_by("the test"):
        executor = ThreadPoolExecutor(2, "pool")  # here
    try:
        assert new() == []  # no workers yet
        executor.submit(work.do)
        executor.submit(work.do)
        (live,) = new()
        assert live.code == "HF712"
        assert live.what == "ThreadPoolExecutor 'pool' with 2 threads, not shut down"
        assert live.creation is not None
        assert live.creation.origin.source == 'executor = ThreadPoolExecutor(2, "pool")  # here'
        assert live.creation.owner == "the test"
        assert (live.waiting_at(), live.part_of(), live.ends_by_itself) == ((), None, False)
        assert not live.ended()
        assert [again.key for again in new()] == [live.key]
    finally:
        work.released.set()
        executor.shutdown()
    assert live.ended()
    assert new() == []


def test_an_executor_that_was_not_recorded_has_the_line_of_its_first_work(
    new: Callable[[], list[LiveObject]],
) -> None:
    with ThreadPoolExecutor(1) as executor:
        with recording():
            executor.submit(int).result()  # here
        (live,) = new()
        assert live.what == "ThreadPoolExecutor with 1 thread, not shut down"
        assert live.creation is not None
        assert live.creation.origin.source == "executor.submit(int).result()  # here"


def test_two_executors_at_one_address_are_two_objects(new: Callable[[], list[LiveObject]]) -> None:
    keys: set[Hashable] = set()
    for _ in range(5):
        with ThreadPoolExecutor(1) as executor:
            executor.submit(int).result()
            keys.update(live.key for live in new())
        del executor
    assert len(keys) == 5


def test_an_executor_of_processes_is_one_object(
    new: Callable[[], list[LiveObject]], spawning: Any
) -> None:
    with recording():
        executor = ProcessPoolExecutor(1, mp_context=spawning)  # here
    try:
        assert executor.submit(abs, -1).result() == 1
        (live,) = new()
        assert live.code == "HF712"
        assert live.what == "ProcessPoolExecutor with 1 process, not shut down"
        assert live.creation is not None
        assert live.creation.origin.source.endswith("# here")
    finally:
        executor.shutdown()
    assert live.ended()
    assert new() == []


def test_an_executor_of_processes_loaded_late_has_the_line_of_its_first_work(
    new: Callable[[], list[LiveObject]], spawning: Any, monkeypatch: pytest.MonkeyPatch
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
            (live,) = new()
            assert live.creation is not None
            assert live.creation.origin.source == "executor.submit(abs, -1).result()  # here"
    finally:
        recorder.__exit__(None, None, None)


def test_a_thread_at_work_for_an_executor_that_was_shut_down_is_a_thread(
    new: Callable[[], list[LiveObject]],
) -> None:
    work = Work()
    executor = ThreadPoolExecutor(1, "pool")
    executor.submit(work.do)
    try:
        assert work.begun.wait(60)
        (before,) = new()
        executor.shutdown(wait=False)
        (live,) = new()
        assert before.ended()
        assert (live.code, live.ends_by_itself) == ("HF711", False)
        assert live.what == "thread 'pool_0' running _worker"
        assert live.waiting_at()[-1].endswith(" in Work.do")
    finally:
        work.released.set()
        executor.shutdown()
    assert live.ended()


def test_the_idle_threads_of_a_dropped_executor_end_by_themselves(
    new: Callable[[], list[LiveObject]],
) -> None:
    executor = ThreadPoolExecutor(1)
    executor.submit(int).result()
    (live,) = new()
    assert live.code == "HF712"
    del executor
    gc.collect()
    # A snapshot keeps no executor alive, and its idle threads end by themselves.
    assert live.ended()
    come(lambda: all(left.ends_by_itself for left in new()))
    come(lambda: not new())


def test_the_default_executor_of_a_loop_belongs_to_a_library(
    kind: str, new: Callable[[], list[LiveObject]]
) -> None:
    loop = new_loop(kind)
    try:
        loop.run_until_complete(asyncio.to_thread(int))
        assert new() == []
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def test_an_executor_set_as_default_belongs_to_a_library(
    kind: str, new: Callable[[], list[LiveObject]]
) -> None:
    loop = new_loop(kind)
    try:
        with recording(), ThreadPoolExecutor(1, "given") as executor:
            loop.set_default_executor(executor)
            loop.run_until_complete(asyncio.to_thread(int))
            assert new() == []
    finally:
        loop.close()


def test_a_default_executor_that_was_not_recorded_is_found_through_tasks(
    new: Callable[[], list[LiveObject]],
) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1, "given") as executor:
            asyncio.get_running_loop().set_default_executor(executor)
            await asyncio.to_thread(int)
            assert new() == []

    asyncio.run(main())


def test_an_executor_that_is_not_the_default_is_listed(
    new: Callable[[], list[LiveObject]],
) -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1, "own") as executor:
            await asyncio.get_running_loop().run_in_executor(executor, int)
            (live,) = new()
            assert live.code == "HF712"

    asyncio.run(main())


def test_what_is_created_in_a_worker_belongs_to_the_phase_in_which_it_works() -> None:
    with recording(), ThreadPoolExecutor(1) as executor:
        with owned_by("first"):
            assert executor.submit(creation_log.current_owner).result() == "first"
        with owned_by("second"):
            assert executor.submit(creation_log.current_owner).result() == "second"


def test_an_executor_that_is_older_than_the_recording_has_no_owner() -> None:
    with ThreadPoolExecutor(max_workers=1) as executor:
        with recording(), owned_by("a test"):
            executor.submit(int).result()
            (found,) = [live for live in take(["threads"]).objects if live.code == "HF712"]
        assert found.creation is not None
        assert found.owner is None
