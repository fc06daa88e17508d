"""Probes for HF4xx: other threads, other loops, other orders."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tests.catalogue.probe import Bench, others, probe, steps
from tests.catalogue.probe_loop import Livelocked, ProbeLoop, Stuck


def on_a_thread(function: Callable[[], Any]) -> Any:
    """Run the function on a thread of its own, to its end, while the loop stands still."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


@probe("HF401")
async def foreign_thread_schedule(bench: Bench, snippet: Any) -> str | None:
    handled = []

    async def handle(message: str) -> None:
        handled.append(message)

    bridge = snippet.Bridge(handle)
    await steps()
    before = bench.loop.wakeups
    on_a_thread(lambda: bridge.on_message("hello"))
    woken = bench.loop.wakeups > before
    await steps()
    await bridge.close()
    assert handled == ["hello"]
    return None if woken else "the loop was not woken"


@probe("HF402")
async def foreign_thread_set(bench: Bench, snippet: Any) -> str | None:
    gate = threading.Event()
    download = snippet.Download(gate.wait)
    waiting = asyncio.create_task(download.wait())
    await steps()
    before = bench.loop.wakeups
    gate.set()
    download._thread.join()
    woken = bench.loop.wakeups > before
    await waiting
    return None if woken else "the loop was not woken"


@probe("HF403")
async def get_event_loop_in_thread(bench: Bench, snippet: Any) -> str | None:
    seen = []

    async def changed(path: str) -> None:
        seen.append(path)

    watcher = snippet.Watcher(changed)
    try:
        future = on_a_thread(lambda: watcher.on_modified("a.txt"))
    except RuntimeError as error:
        return str(error)
    await steps()
    assert future.done()
    return None if seen == ["a.txt"] else "the change was lost"


@probe("HF411")
async def live_set_iterated(bench: Bench, snippet: Any) -> str | None:
    jobs = snippet.Jobs()
    for _ in range(3):
        jobs.start(asyncio.Event().wait)
    await steps()
    try:
        await jobs.close()
    except RuntimeError as error:
        return f"{error}; {len(others())} tasks left"
    return "tasks left" if others() else None


@probe("HF412")
async def snapshot_misses_latecomers(bench: Bench, snippet: Any) -> str | None:
    async def slow_to_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)

    jobs = snippet.Jobs()
    jobs.start(slow_to_end)
    await steps()
    closing = asyncio.create_task(jobs.close())
    await steps()
    with contextlib.suppress(RuntimeError):
        jobs.start(asyncio.Event().wait)
    await closing
    await steps()
    return "a latecomer lives on" if others() else None


@probe("HF421")
def primitive_across_loops(bench: Bench, snippet: Any) -> str | None:
    async def send(request: str) -> str:
        await steps(2)
        return request

    api = snippet.Api(send)

    async def both() -> list[str]:
        return list(await asyncio.gather(api.call("a"), api.call("b")))

    assert bench.run(both()) == ["a", "b"]
    with contextlib.closing(ProbeLoop()) as second:
        try:
            second.run_until_complete(both())
        except RuntimeError as error:
            return str(error)
        finally:
            second.run_until_complete(steps())
    return None


@probe("HF422")
def submit_to_stopped_loop(bench: Bench, snippet: Any) -> str | None:
    async def open_bridge() -> Any:
        return snippet.Bridge()

    async def job() -> str:
        return "answer"

    bridge = bench.run(open_bridge())
    assert not bench.loop.is_running()
    try:
        future = on_a_thread(lambda: bridge.submit(job))
    except RuntimeError:
        bench.run(bridge.close())
        return None
    return None if future.done() else "accepted, and nobody will ever answer"


@contextlib.contextmanager
def blocking_waits() -> Iterator[list[str]]:
    """Make a wait that would block a running loop raise instead, and keep a note of it."""
    plain = concurrent.futures.Future.result
    reported: list[str] = []

    def result(self: Any, timeout: float | None = None) -> Any:
        if not self.done() and asyncio._get_running_loop() is not None:
            reported.append("the loop waits for itself")
            raise concurrent.futures.CancelledError
        return plain(self, timeout)

    concurrent.futures.Future.result = result  # type: ignore[method-assign]
    try:
        yield reported
    finally:
        concurrent.futures.Future.result = plain  # type: ignore[method-assign]


@probe("HF423", outside=True)
async def loop_waits_for_itself(bench: Bench, snippet: Any) -> str | None:
    async def load(key: str) -> str:
        return key.upper()

    store = snippet.Store(load)
    assert await asyncio.to_thread(store.get, "key") == "KEY"
    with (
        blocking_waits() as reported,
        contextlib.suppress(RuntimeError, concurrent.futures.CancelledError),
    ):
        store.get("key")
    await steps()
    return reported[0] if reported else None


@probe("HF424")
def loop_thread_left_running(bench: Bench, snippet: Any) -> str | None:
    started = threading.Event()
    put_away = threading.Event()

    async def job() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            put_away.set()

    background = snippet.Background()
    background.submit(job)
    assert started.wait(60)
    background.close()
    ended = put_away.is_set() and background.loop.is_closed() and not background.thread.is_alive()
    if not ended:
        background.thread.join()
        for task in asyncio.all_tasks(background.loop):
            task.cancel()
        background.loop.run_until_complete(steps())
        background.loop.close()
    return None if ended else "its tasks, and the loop itself, are left as they stood"


@probe("HF425")
async def thread_lock_over_await(bench: Bench, snippet: Any) -> str | None:
    loaded = asyncio.Event()

    async def load(key: str) -> str:
        await loaded.wait()
        return key.upper()

    cache = snippet.Cache(load)
    first = asyncio.create_task(cache.get("a"))
    await steps()
    # A second task would wait here without a timeout, in the thread of the loop.
    free = cache._lock.acquire(blocking=False)
    if free:
        cache._lock.release()
    loaded.set()
    assert await first == "A"
    return None if free else "a second task would block the loop"


@probe("HF431")
def deadlock(bench: Bench, snippet: Any) -> str | None:
    async def record(account: Any, amount: int) -> None:
        await asyncio.sleep(1)

    async def both_ways() -> tuple[int, int]:
        one, two = snippet.Account(1, 100), snippet.Account(2, 100)
        await asyncio.gather(
            snippet.transfer(one, two, 10, record), snippet.transfer(two, one, 30, record)
        )
        return one.balance, two.balance

    try:
        assert bench.run(both_ways()) == (120, 80)
    except Stuck:
        return "everybody waits"
    return None


@probe("HF432")
def livelock(bench: Bench, snippet: Any) -> str | None:
    async def dial() -> str:
        if bench.loop.time() < 5:
            raise ConnectionError
        return "line"

    try:
        assert bench.run(snippet.connect(dial)) == "line"
    except Livelocked:
        return "step after step, and the clock does not move"
    return None


@probe("HF441")
async def fails_under_schedule(bench: Bench, snippet: Any) -> str | None:
    async def save(total: int) -> None:
        await asyncio.sleep(1)

    counter = snippet.Counter(save)
    await asyncio.gather(counter.add(1), counter.add(2))
    return None if counter.total == 3 else f"1 + 2 = {counter.total}"


@probe("HF442")
async def invariant_broken(bench: Bench, snippet: Any) -> str | None:
    async def announce(name: str) -> None:
        await asyncio.sleep(0)

    meeting = snippet.Meeting(announce)
    joining = [asyncio.create_task(meeting.join(name)) for name in ("ann", "bob")]
    broken = 0
    while not all(task.done() for task in joining):
        broken += not meeting.is_consistent()
        await asyncio.sleep(0)
    assert meeting.is_consistent()
    return "a member without a seat" if broken else None


@probe("HF443")
async def fails_in_normal_run(bench: Bench, snippet: Any) -> str | None:
    mailbox = snippet.Mailbox()
    await mailbox.send("first")
    await mailbox.send("second")
    received = await mailbox.receive_all()
    return None if received == ["first", "second"] else f"received only {received}"
