"""The stock loop with delays: findings of the freer models are tried on it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast.explore.latency import latency
from holdfast.explore.plan import Cancel, Model, Plan, Settings
from holdfast.explore.refusals import Uncontrolled
from holdfast.explore.run import run
from holdfast.explore.stock import StockLoop, realised
from holdfast.explore.verdicts import Verdict
from holdfast.explore.victims import victim
from tests.explore.walk import stock

Program = Callable[[], Coroutine[Any, Any, object]]


def _found(program: Program, model: Model, **options: Any) -> Verdict:
    """What a random walk in this model finds."""
    for seed in range(200):
        plan = Plan(tail="random", seed=seed)
        record = run(program, plan, Settings(model=model), **options)
        if record.verdict is not None:
            return record.verdict
    raise AssertionError("nothing found")


def _on_stock(program: Program, settings: Settings | None = None, **options: Any) -> str:
    loop = StockLoop(stall=0.0)
    verdict = run(program, Plan(), settings or Settings(), loop=loop, **options).verdict
    return f"{verdict.code} {verdict.error_type}".strip() if verdict else ""


# --- realised or not -------------------------------------------------------------------------


async def _answer_after_a_minute() -> None:
    """Wrong wherever an answer may take long."""
    answers: list[str] = []

    async def ask() -> None:
        answers.append(await latency("answer"))

    task = asyncio.create_task(ask())
    await asyncio.sleep(0.5)
    seen = list(answers)
    await task
    assert seen, "it took longer than that"


def test_a_finding_of_model_latency_is_realised() -> None:
    verdict = _found(_answer_after_a_minute, "latency")
    assert realised(_answer_after_a_minute, verdict, Settings(model="latency"))


async def _relies_on_start_order() -> None:
    """Right: tasks start in the order in which they were made."""
    log: list[int] = []

    async def note(number: int) -> None:
        log.append(number)

    await asyncio.gather(note(1), note(2))
    assert log == [1, 2]


def test_a_finding_of_model_wild_that_the_stock_loop_never_shows_is_not_realised() -> None:
    verdict = _found(_relies_on_start_order, "wild")
    assert not realised(_relies_on_start_order, verdict, Settings(model="wild"), tries=50)


def test_another_error_is_not_the_same_finding() -> None:
    verdict = Verdict("HF441", "", error_type="KeyError")
    assert not realised(_answer_after_a_minute, verdict, Settings(model="latency"), tries=30)


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


def test_a_finding_that_needs_a_cancel_is_realised_by_one() -> None:
    async def program() -> None:
        held: list[int] = []

        async def hold() -> None:
            held.append(1)
            await asyncio.sleep(0.01)
            held.pop()

        await victim(hold())
        assert not held

    verdict = Verdict("HF441", "", error_type="AssertionError")
    assert realised(program, verdict, Settings(model="wild", cancel="tasks"))
    assert realised(program, verdict, Settings(model="wild", cancel="double"))
    assert not realised(program, verdict, Settings(model="wild"), tries=20)


def test_the_program_itself_can_be_the_victim() -> None:
    async def program() -> None:
        child = asyncio.create_task(asyncio.sleep(0.01))
        await asyncio.sleep(0)
        await asyncio.shield(child)

    verdict = Verdict("HF102", "")
    assert realised(program, verdict, Settings(model="wild", cancel="main"))


def test_without_anybody_to_cancel_it_is_tried_without() -> None:
    async def program() -> None:
        await asyncio.sleep(0)

    verdict = Verdict("HF441", "")
    assert not realised(program, verdict, Settings(model="wild", cancel="tasks"), tries=3)


def test_a_broken_invariant_is_realised() -> None:
    state = {"open": 0}

    async def program() -> None:
        state["open"] = 0
        task = asyncio.create_task(latency())
        await asyncio.sleep(0.5)
        state["open"] = 1 if not task.done() else 0
        await task
        state["open"] = 0

    def closed() -> bool:
        return state["open"] == 0

    verdict = _found(program, "latency", invariant=closed)
    assert verdict.code == "HF442"
    assert realised(program, verdict, Settings(model="latency"), invariant=closed)


# --- the loop itself -------------------------------------------------------------------------


def test_what_needs_an_outside_cannot_be_tried() -> None:
    async def program() -> None:
        with contextlib.suppress(Exception):
            await asyncio.open_connection("127.0.0.1", 9)

    with pytest.raises(Uncontrolled, match=r"create_connection.*no outside"):
        _on_stock(program)
    assert not realised(program, Verdict("HF441", ""), Settings(model="wild"))


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

    assert realised(program, Verdict("HF501", ""), Settings(model="wild", cancel="tasks"))
