"""`stress`: what grows over many cancelled runs is reported with its line, and nothing else is
(S3.8). A run that does not end is named, and never waited for without a bound."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import handfast
from handfast._leaks.stress.report import Growth
from handfast._leaks.stress.stress import FirstRunTimeout, Progress, StressRun
from handfast.leaks import StressReport, stress

pytestmark = pytest.mark.usefixtures("small_heap")

Program = Callable[[], Any]


@pytest.fixture
def kept() -> Iterator[list[Any]]:
    """Keeps what a program leaks, and ends it after the test."""
    objects: list[Any] = []
    yield objects
    for live in objects:
        for end in ("shutdown", "kill", "close"):
            if hasattr(live, end) and not isinstance(live, socket.socket):
                getattr(live, end)()
        if isinstance(live, subprocess.Popen):
            live.wait()
        if isinstance(live, socket.socket):
            live.close()


def grown(report: StressReport, check: str) -> Growth:
    found = [growth for growth in report.growth if growth.check == check]
    assert found, str(report)
    assert not report.clean
    return found[0]


# --- what grows --------------------------------------------------------------------------------


def test_a_task_in_each_run_is_reported_with_its_line(kept: list[Any]) -> None:
    async def fetch() -> None:
        kept.append(asyncio.create_task(asyncio.sleep(3600)))
        await asyncio.sleep(0)

    growth = grown(stress(fetch, 20, cancel=None), "tasks")
    assert growth.per_run == 1.0
    assert growth.last - growth.first == 20
    assert [runs for runs, _ in growth.samples] == list(range(21))
    (place,) = growth.sources
    assert (place.code, place.count) == ("HF102", 20)
    assert Path(__file__).name in place.where
    assert place.where.endswith(".fetch")
    kept.clear()


def test_a_task_that_is_only_dropped_by_a_cancel_is_found(kept: list[Any]) -> None:
    async def fetch() -> None:
        task = asyncio.create_task(asyncio.sleep(3600))
        kept.append(task)
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()  # the bug: not in a finally

    assert stress(fetch, 30, cancel=None).clean
    growth = grown(stress(fetch, 60), "tasks")
    assert 0.2 < growth.per_run < 1
    kept.clear()


def test_a_timer_in_each_run_is_found() -> None:
    async def remind() -> None:
        asyncio.get_running_loop().call_later(3600, int)
        await asyncio.sleep(0)

    report = stress(remind, 10, cancel=None)
    assert grown(report, "timers").last >= 10
    assert [growth.check for growth in report.growth] == ["timers"]


def test_an_unread_error_in_each_run_is_found(kept: list[Any]) -> None:
    async def fail() -> None:
        raise ValueError("unread")

    async def main() -> None:
        kept.append(asyncio.create_task(fail()))
        await asyncio.sleep(0)

    report = stress(main, 10, cancel=None)
    assert grown(report, "errors").sources[0].code == "HF601"
    for task in kept:
        task.exception()
    kept.clear()


def test_an_executor_in_each_run_is_found(kept: list[Any]) -> None:
    async def compute() -> None:
        pool = ThreadPoolExecutor(1)
        kept.append(pool)
        await asyncio.get_running_loop().run_in_executor(pool, int)

    report = stress(compute, 10, cancel=None)
    assert grown(report, "threads").last - grown(report, "threads").first >= 10


def test_a_socket_that_a_cancel_leaves_open_is_found(kept: list[Any]) -> None:
    async def talk() -> None:
        ours, theirs = socket.socketpair()
        kept.extend((ours, theirs))
        for _ in range(3):
            await asyncio.sleep(0)
        ours.close()
        theirs.close()

    assert grown(stress(talk, 40), "descriptors").last > 10


def test_a_child_that_a_cancel_leaves_running_is_found(kept: list[Any]) -> None:
    async def convert() -> None:
        process = subprocess.Popen(["sleep", "600"])
        kept.append(process)
        for _ in range(5):
            await asyncio.sleep(0)
        process.kill()
        process.wait()

    growth = grown(stress(convert, 30), "children")
    assert growth.sources[0].code == "HF701"


class Cycle:
    """What no count of references frees."""

    def __init__(self) -> None:
        self.me = self


class Cache:
    """Keeps all tasks."""

    def __init__(self) -> None:
        self.tasks: dict[int, asyncio.Task[None]] = {}


def test_a_dict_that_keeps_tasks_which_have_ended_is_found() -> None:
    cache = Cache()

    async def ask() -> None:
        cache.tasks[len(cache.tasks)] = task = asyncio.create_task(asyncio.sleep(0))
        await task

    report = stress(ask, 10, cancel=None)
    growth = grown(report, "retained")
    assert growth.last - growth.first == 10
    assert growth.sources[0].code == "HF131"


def test_what_only_the_collector_frees_is_no_growth() -> None:
    current: list[Cycle] = []

    async def connect() -> None:
        connection = Cycle()
        for end in socket.socketpair():
            weakref.finalize(connection, os.close, end.detach())
        current[:] = [connection]  # alive until the next run, in whatever generation that is
        await asyncio.sleep(0)

    try:
        report = stress(connect, 40)
        assert report.clean, str(report)
    finally:
        current.clear()
        gc.collect()


def test_growing_memory_is_found_on_request(kept: list[Any]) -> None:
    async def remember() -> None:
        kept.append(bytearray(10_000))
        await asyncio.sleep(0)

    report = stress(remember, 10, cancel=None, memory=True)
    growth = grown(report, "memory")
    assert growth.per_run == pytest.approx(10_000, rel=0.2)
    assert f"{Path(__file__).name}:" in growth.sources[0].where
    assert not any("memory" in what for what in report.not_checked)
    assert "bytes a run" in str(report)


# --- what does not -----------------------------------------------------------------------------


async def owned() -> None:
    async with handfast.Scope("work") as scope:
        scope.spawn(asyncio.sleep(3600))
        for _ in range(3):
            await asyncio.sleep(0)
        await scope.close(grace=0)


async def converted() -> None:
    async with handfast.Process("cat") as process:
        await asyncio.sleep(0)
        await process.close(grace=5)


async def computed() -> None:
    await asyncio.to_thread(int)


@pytest.mark.parametrize("program", [owned, converted, computed])
def test_cancelled_operations_that_are_owned_leave_no_growth(program: Program) -> None:
    report = stress(program, 40)
    assert report.clean, str(report)
    assert report.cancelled > 20
    assert (report.runs, report.warm_up, report.failed) == (40, 10, 0)
    assert str(report).startswith("nothing grows: 40 runs after 10 to warm up, ")


@pytest.mark.parametrize("every", [1, 4])
def test_a_pool_that_warms_up_is_no_growth(kept: list[Any], every: int) -> None:
    calls = 0

    async def pooled() -> None:
        nonlocal calls
        calls += 1
        if calls % every == 0 and len(kept) < 10:
            kept.append(asyncio.create_task(asyncio.sleep(3600)))
        await asyncio.sleep(0)

    report = stress(pooled, 100)
    assert report.clean, str(report)
    kept.clear()


def test_what_ends_by_itself_after_the_last_run_is_no_growth(kept: list[Any]) -> None:
    async def late() -> None:
        if not kept:
            kept.append(asyncio.Event())
        kept.append(asyncio.create_task(kept[0].wait()))
        if len(kept) == 21:  # the last: ten to warm up, ten that count
            asyncio.get_running_loop().call_later(0.02, kept[0].set)
        await asyncio.sleep(0)

    report = stress(late, 10, cancel=None)
    assert report.clean, str(report)
    kept.clear()


def test_what_was_there_before_is_not_counted() -> None:
    gate = threading.Event()
    runs = 0
    others = [threading.Thread(target=gate.wait) for _ in range(5)]
    for other in others:
        other.start()

    async def main() -> None:
        nonlocal runs
        runs += 1
        if runs == 25:
            gate.set()
            for other in others:
                other.join()
        await asyncio.sleep(0)

    try:
        assert stress(main, 20).clean
    finally:
        gate.set()


def test_a_part_of_a_new_object_is_not_reported_beside_it(kept: list[Any]) -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        await asyncio.Event().wait()
        yield 1

    async def read() -> None:
        async for _ in numbers():
            pass

    async def main() -> None:
        kept.append(asyncio.create_task(read()))
        await asyncio.sleep(0)

    report = stress(main, 10, cancel=None)
    assert [growth.check for growth in report.growth] == ["tasks"]
    kept.clear()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_connections_that_pile_up_at_one_server_are_found(kept: list[Any]) -> None:
    servers: list[asyncio.Server] = []
    accepted: list[asyncio.BaseTransport] = []

    class Silent(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(transport)

    async def ask() -> None:
        if not servers:
            loop = asyncio.get_running_loop()
            servers.append(await loop.create_server(Silent, "127.0.0.1", 0))
        kept.append(socket.create_connection(servers[0].sockets[0].getsockname()))
        while len(accepted) < len(kept):
            await asyncio.sleep(0)

    report = stress(ask, 10, cancel=None)
    servers.clear()
    accepted.clear()
    gc.collect()  # here, where it may be said that they were left open
    growth = grown(report, "connections")
    assert growth.last - growth.first == 10


# --- the runs ----------------------------------------------------------------------------------


def cancelled_steps(seed: int) -> list[int]:
    seen: list[int] = []

    async def main() -> None:
        for step in range(6):
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                seen.append(step)
                raise

    stress(main, 40, seed=seed)
    return seen


def test_the_same_seed_cancels_at_the_same_steps() -> None:
    first = cancelled_steps(1)
    assert first == cancelled_steps(1)
    assert first != cancelled_steps(2)
    assert set(first) == set(range(6))


def test_no_run_is_cancelled_on_request() -> None:
    ends = 0

    async def main() -> None:
        nonlocal ends
        await asyncio.sleep(0)
        ends += 1

    report = stress(main, 10, cancel=None)
    assert (ends, report.cancelled) == (20, 0)
    assert "cancellation: no run was cancelled" in report.not_checked


def test_a_function_that_never_waits_is_only_cancelled_before_it_begins() -> None:
    async def main() -> None: ...

    report = stress(main, 10)
    assert report.clean
    assert "cancellation at a step: the function never waits" in report.not_checked


def test_an_error_after_a_cancel_is_counted_and_is_no_leak() -> None:
    async def main() -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            raise ValueError("torn") from None

    report = stress(main, 30)
    assert report.clean
    assert report.failed > len(report.errors) == 5
    assert "cancelled at its step 1: ValueError: torn (" in str(report.errors[0])
    assert f"{report.failed} runs ended with an error:" in str(report)


def test_the_first_run_raises_its_own_error() -> None:
    async def main() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        stress(main, 10)


def test_a_function_that_works_only_once_is_reported() -> None:
    runs = 0

    async def main() -> None:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0)
        if runs > 1:
            raise asyncio.CancelledError

    report = stress(main, 10, cancel=None)
    assert report.failed == 19
    assert "the function itself: it failed each time it was not cancelled" in report.not_checked
    assert "run 2, not cancelled: CancelledError: and not by stress()" in str(report)


def test_progress_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["handfast._leaks.stress.stress"], "_EVERY", 0)
    updates: list[Progress] = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(3600, int)

    stress(main, 20, cancel=None, progress=updates.append)
    assert updates[0] == Progress(0, 20, updates[0].seconds, ())
    assert [each.runs for each in updates[-20:]] == list(range(1, 21))
    assert updates[-1].growing == ("timers",)


def test_another_kind_of_loop_can_be_used() -> None:
    uvloop = pytest.importorskip("uvloop")
    kinds = set()

    async def main() -> None:
        kinds.add(type(asyncio.get_running_loop()))
        await owned()

    assert stress(main, 20, loop_factory=uvloop.new_event_loop).clean
    assert kinds == {uvloop.Loop}


# --- bounds ------------------------------------------------------------------------------------


def test_a_run_that_swallows_its_cancel_is_named_and_not_waited_for() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.Event().wait()

    report = stress(stubborn, 1000, timeout=0.1)
    assert not report.clean
    assert not report.growth
    assert len(report.stuck) == 3
    assert {stuck.code for stuck in report.stuck} == {"HF501"}
    assert "HF501 cancel-swallowed: run " in str(report)
    assert "cancelled at its step 1, did not end within 0.1 s\n    waiting at  " in str(report)
    assert any("runs that were still to come" in what for what in report.not_checked)
    assert str(report).startswith("3 runs did not end, too few rounds to find growth: ")


def test_a_run_that_waits_for_what_a_cancelled_one_has_kept_is_named() -> None:
    lock = asyncio.Lock()

    async def main() -> None:
        await lock.acquire()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        lock.release()  # the bug: a cancel goes past this line

    report = stress(main, 1000, timeout=0.1)
    assert not report.clean
    assert any(stuck.point is None and stuck.code == "" for stuck in report.stuck)
    assert ", not cancelled, did not end within 0.1 s" in str(report)


def test_a_first_run_without_end_is_an_error_that_says_where() -> None:
    async def serve() -> None:
        await asyncio.Event().wait()

    with pytest.raises(
        FirstRunTimeout, match=r"did not end within 0\.1 s: .*\n    waiting at  .*serve"
    ):
        stress(serve, 10, timeout=0.1)


def test_an_interrupt_is_raised_and_what_was_seen_is_kept(kept: list[Any]) -> None:
    async def main() -> None:
        kept.append(asyncio.create_task(asyncio.sleep(3600)))
        await asyncio.sleep(0)
        if len(kept) == 30:
            raise KeyboardInterrupt

    course = StressRun(main, 40, cancel=None)
    with pytest.raises(KeyboardInterrupt):
        course.run()
    report = course.report()
    assert report.interrupted
    assert report.runs == 20
    assert grown(report, "tasks").per_run == 1.0
    kept.clear()


# --- wrong use ---------------------------------------------------------------------------------


async def nothing() -> None: ...


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n": 9}, "n=9: fewer than 10 runs show no trend"),
        ({"cancel": "often"}, "cancel='often': use 'random' or None"),
        ({"timeout": 0}, "timeout=0: must be more than 0 seconds"),
    ],
)
def test_wrong_numbers_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        stress(nothing, **wrong)


@pytest.mark.parametrize("wrong", [3, lambda: 3], ids=["number", "function"])
def test_what_is_no_async_function_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="takes an async function"):
        stress(wrong)


def test_inside_a_running_loop_the_error_says_what_to_do() -> None:
    async def main() -> StressReport:
        with pytest.raises(RuntimeError, match=r"await asyncio\.to_thread\(stress, \.\.\.\)"):
            stress(nothing)
        return await asyncio.to_thread(stress, nothing, 10)

    assert asyncio.run(main()).clean


def test_the_patches_are_removed_in_the_end() -> None:
    create_task: Callable[..., Awaitable[Any]] = asyncio.BaseEventLoop.create_task
    stress(nothing, 10)
    assert asyncio.BaseEventLoop.create_task is create_task
