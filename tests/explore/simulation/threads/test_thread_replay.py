"""Replays are exact; and what real threads do on a stock loop is among what the explorer lists."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio.from_thread
import anyio.to_thread
import pytest

import handfast
from handfast._explore.loop.virtual_clock import virtual_clocks
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from tests.explore.all_schedules import plain
from tests.explore.simulation.threads.thread_programs import IDEAL, every, once

# Writes to the log; the function is called where a thread may take long.
Paused = Callable[[list[str], Callable[[], None]], Coroutine[Any, Any, None]]


async def _jobs(log: list[str], pause: Callable[[], None]) -> None:
    def work(name: str) -> str:
        pause()
        log.append(name)
        return name.upper()

    async def one(name: str) -> None:
        log.append(await asyncio.to_thread(work, name))

    await asyncio.gather(one("a"), one("b"))


async def _one_worker(log: list[str], pause: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as pool:
        first, second = (loop.run_in_executor(pool, pause) for _ in range(2))
        second.add_done_callback(lambda _: log.append("second "))
        await first
        log.append("first ")
        await second


async def _hand_over(log: list[str], pause: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def body() -> None:
        pause()
        loop.call_soon_threadsafe(done.set)
        pause()
        log.append("thread ")

    thread = threading.Thread(target=body)
    thread.start()
    await done.wait()
    log.append("loop ")
    thread.join()


async def _lost_update(log: list[str], pause: Callable[[], None]) -> None:
    count = [0]

    def add() -> None:
        value = count[0]
        pause()
        count[0] = value + 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.append(str(count[0]))


async def _lock(log: list[str], pause: Callable[[], None]) -> None:
    lock = threading.Lock()

    def body(name: str) -> None:
        with lock:
            log.append(name)
            pause()
            log.append(name)

    threads = [threading.Thread(target=body, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    log.append("started ")
    for thread in threads:
        thread.join()


def _nap() -> None:
    time.sleep(0)


def _no_nap() -> None:
    """For a program that has hand-overs enough without."""


@pytest.mark.parametrize(
    ("program", "pause"),
    [(_jobs, _no_nap), (_one_worker, _nap), (_hand_over, _nap), (_lost_update, _nap)],
)
def test_what_real_threads_do_on_the_stock_loop_is_listed(
    program: Paused, pause: Callable[[], None]
) -> None:
    listed = every(lambda log: program(log, pause))
    lot = random.Random(1)
    seen = set()
    for _ in range(40):
        log: list[str] = []
        asyncio.run(program(log, lambda: time.sleep(lot.choice((0, 0, 0.0005, 0.001)))))
        seen.add("".join(log))
    assert seen <= listed


@pytest.mark.parametrize("program", [_jobs, _one_worker, _hand_over, _lost_update, _lock])
def test_random_schedules_replay_exactly(program: Paused) -> None:
    log: list[str] = []

    def again() -> Coroutine[Any, Any, None]:
        log.clear()
        return program(log, lambda: time.sleep(0.01))

    with virtual_clocks():
        for seed in range(40):
            walked = run(again, Plan(tail="random", seed=seed, observe=True), Settings())
            said = tuple(log)
            replayed = run(again, Plan(choices=walked.departed, observe=True), Settings())
            assert tuple(log) == said
            assert replayed.taken == walked.taken
            assert replayed.points == walked.points
            assert (replayed.steps, replayed.instants) == (walked.steps, walked.instants)
            assert replayed.stall == walked.stall
            assert replayed.verdict == walked.verdict


# --- handfast's own runtime, and anyio -----------------------------------------------------------


def test_scope_answers_a_thread_that_submits_to_it() -> None:
    async def program(log: list[str]) -> None:
        async def double(number: int) -> int:
            await asyncio.sleep(1)
            return 2 * number

        async with handfast.Scope("scope") as scope:
            answer = await asyncio.to_thread(lambda: scope.submit(double, 21).result())
            log.append(str(answer))

    assert every(program) == {"42"}


def test_scope_is_closed_from_a_thread() -> None:
    async def program(log: list[str]) -> None:
        scope = handfast.Scope("scope", on_failure="report")
        scope.spawn(asyncio.sleep(1))
        report = await asyncio.to_thread(scope.close_from_thread)
        log.append(str(report.clean))

    with virtual_clocks():
        assert plain(program) == ("True",)


def test_submit_against_close_is_answered_in_every_schedule() -> None:
    async def program(log: list[str]) -> None:
        scope = handfast.Scope("scope", on_failure="report")

        async def work() -> None:
            log.append("worked")

        def submits() -> None:
            try:
                scope.submit(work).result(5)
            except handfast.errors.ScopeClosed:
                log.append("refused")

        thread = threading.Thread(target=submits)
        thread.start()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await scope.close()
        thread.join()

    assert every(program, Settings(stall=0.0)) == {"worked", "refused"}


def test_resource_that_uses_threads_is_held_and_let_go() -> None:
    async def program(log: list[str]) -> None:
        class Resource:
            async def __aenter__(self) -> None:
                await asyncio.to_thread(log.append, "open ")

            async def __aexit__(self, *exc: object) -> None:
                await asyncio.to_thread(log.append, "closed")

        async with handfast.Scope("scope") as scope:
            await scope.hold(Resource())

    assert plain(program) == ("open ", "closed")


def test_worker_threads_of_anyio_are_managed_and_none_is_left() -> None:
    async def program(log: list[str]) -> None:
        def work() -> str:
            anyio.from_thread.run(anyio.sleep, 1)
            return "done"

        log.append(await anyio.to_thread.run_sync(work))

    assert every(program) == {"done"}


def test_thread_that_polls_a_stop_flag_is_joined() -> None:
    async def program() -> None:
        stop = threading.Event()

        def polls() -> None:
            while not stop.is_set():
                time.sleep(1)

        thread = threading.Thread(target=polls)
        thread.start()
        await asyncio.sleep(2.5)
        stop.set()
        await asyncio.to_thread(thread.join)

    assert once(program, IDEAL).verdict is None
