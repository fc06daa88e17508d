"""The stock loop with delays, which the explorer is compared with."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from handfast._explore.latency import latency
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.plan import Cancel, Plan, Settings
from handfast._explore.search.run import run
from tests.explore.all_schedules import stock
from tests.support.stock_loop import StockLoop

Program = Callable[[], Coroutine[Any, Any, object]]


def _on_stock(program: Program, settings: Settings | None = None, **options: Any) -> str:
    loop = StockLoop(stall=0.0)
    verdict = run(program, Plan(), settings or Settings(), loop=loop, **options).verdict
    return f"{verdict.code} {verdict.error_type}".strip() if verdict else ""


def test_the_same_seed_gives_the_same_run() -> None:
    async def program(log: list[str]) -> None:
        loop = asyncio.get_running_loop()

        async def note(letter: str) -> None:
            for _ in range(3):
                await latency(name=letter)
                await asyncio.sleep(0.01)
                log.append(f"{letter} {loop.time():.6f}")

        await asyncio.gather(*(note(letter) for letter in "abc"))

    first = [stock(program, StockLoop(seed)) for seed in range(20)]
    assert first == [stock(program, StockLoop(seed)) for seed in range(20)]
    assert len(set(first)) > 10


def test_what_needs_an_outside_cannot_be_tried() -> None:
    async def program() -> None:
        with contextlib.suppress(Exception):
            await asyncio.open_connection("127.0.0.1", 9)

    with pytest.raises(Uncontrolled, match=r"create_connection.*no outside"):
        _on_stock(program)


def test_threads_are_waited_for() -> None:
    waited = threading.Event()

    class Waiting(StockLoop):
        def _wait(self, timeout: float | None) -> float:
            seconds = super()._wait(timeout)
            if seconds:
                waited.set()
            return seconds

    async def program() -> None:
        assert await asyncio.to_thread(waited.wait, 60)
        await asyncio.sleep(3600)

    assert run(program, Plan(), Settings(), loop=Waiting(stall=0.0)).verdict is None


def test_a_cancel_can_come_while_it_has_nothing_to_do() -> None:
    async def program() -> None:
        asyncio.get_running_loop().call_later(0, lambda: None)
        task = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.wait([task])
        assert task.cancelled()

    plan = Plan(cancels=(Cancel(3, 1),))
    record = run(program, plan, Settings(cancel="tasks"), loop=StockLoop(stall=0.0))
    assert (record.verdict, record.cancelled) == (None, 1)


def test_a_timeout_starts_late_too() -> None:
    async def program(log: list[str]) -> None:
        async def short() -> None:
            try:
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(1)
            except TimeoutError:
                log.append("short")

        async def long() -> None:
            await asyncio.sleep(0.03)
            log.append("long")

        await asyncio.gather(long(), short())

    seen = {stock(program, StockLoop(seed)) for seed in range(100)}
    assert seen == {("short", "long"), ("long", "short")}


def test_its_verdicts_are_the_explorers() -> None:
    async def deadlock() -> None:
        await asyncio.Event().wait()

    async def livelock() -> None:
        while True:
            await asyncio.sleep(0)

    async def left_over() -> None:
        asyncio.create_task(asyncio.sleep(3600))

    async def timer() -> None:
        asyncio.get_running_loop().call_later(3600, print)

    async def slow_to_end() -> None:
        async def slow() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(1)

        asyncio.create_task(slow())
        await asyncio.sleep(0)

    assert _on_stock(deadlock) == "HF431"
    assert _on_stock(livelock, Settings(step_limit=100)) == "HF432"
    assert _on_stock(left_over) == "HF102"
    assert _on_stock(timer) == "HF721"
    assert _on_stock(slow_to_end) == "HF102"


def test_a_swallowed_cancel_shows_on_it() -> None:
    async def program() -> None:
        async def swallow() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)

        task = asyncio.create_task(swallow())
        await asyncio.wait([task])

    plan = Plan(cancels=(Cancel(3, 1),))
    record = run(program, plan, Settings(cancel="tasks"), loop=StockLoop(stall=0.0))
    assert record.verdict is not None
    assert record.verdict.code == "HF501"


def test_a_broken_invariant_shows_on_it() -> None:
    state = {"open": 0}

    async def program() -> None:
        state["open"] = 1
        await asyncio.sleep(0)
        state["open"] = 0

    assert _on_stock(program, invariant=lambda: state["open"] == 0) == "HF442"
