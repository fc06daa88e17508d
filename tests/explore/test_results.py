"""What an exploration gives back, and that a token replays it exactly."""

from __future__ import annotations

import asyncio
import functools
import gc
import random
import time
from typing import Any

import pytest

from holdfast.explore import BadToken, Divergence, Progress, explore, replay, victim
from holdfast.explore.plan import Cancel, Plan, Settings
from holdfast.explore.token import Token, fingerprint

seen: list[str] = []


async def racy() -> None:
    order: list[str] = []

    async def note(name: str, delay: float) -> None:
        await asyncio.sleep(delay)
        order.append(name)

    await asyncio.gather(note("a", 0.02), note("b", 0.01), note("c", 0.03))
    assert order == ["b", "a", "c"]


async def fine() -> None:
    await asyncio.gather(asyncio.sleep(0.01), asyncio.sleep(0.02))


async def leaky() -> None:
    lock = asyncio.Lock()

    async def hold_it() -> None:
        await lock.acquire()
        await asyncio.sleep(0.01)
        lock.release()

    await victim(hold_it())
    assert not lock.locked()


def test_a_token_replays_a_thousand_times_out_of_a_thousand() -> None:
    for program, options in ((racy, {}), (leaky, {"cancel": True})):
        counterexample = explore(program, **options).counterexample  # type: ignore[arg-type]
        assert counterexample is not None
        for _ in range(500):
            again = replay(program, counterexample.token)
            assert (again.code, again.verdict.where) == (
                counterexample.code,
                counterexample.verdict.where,
            )
            assert again.steps == counterexample.steps


def test_the_same_seed_finds_the_same() -> None:
    tokens = {str(explore(racy, strategy="random", seed=3).counterexample) for _ in range(3)}
    assert len(tokens) == 1


def test_a_counterexample_is_shrunk_to_the_fewest_departures() -> None:
    for seed in range(5):
        counterexample = explore(racy, strategy="random", seed=seed).counterexample
        assert counterexample is not None
        assert len(counterexample.departures) == 1
        assert counterexample.stall == pytest.approx(0.01)


def test_a_changed_program_is_said_to_have_changed() -> None:
    counterexample = explore(racy).counterexample
    assert counterexample is not None
    with pytest.raises(Divergence, match="code has changed"):
        replay(fine, counterexample.token)


def test_a_program_that_is_not_the_same_each_time_is_told_the_usual_causes() -> None:
    runs = 0

    async def moody() -> None:
        nonlocal runs
        runs += 1
        if runs > 40:
            await asyncio.sleep(0)
        await racy()

    counterexample = explore(moody).counterexample
    assert counterexample is not None
    runs = 100
    with pytest.raises(Divergence, match="PYTHONHASHSEED"):
        counterexample.replay()


def test_a_divergence_says_where() -> None:
    counterexample = explore(racy).counterexample
    assert counterexample is not None
    token = Token.parse(counterexample.token)
    more = Token(
        token.fingerprint, token.settings, token.plan, (9,), token.steps, token.code, token.python
    )
    with pytest.raises(Divergence, match=r"choice \d+ \(\w+\) has \d answers, and had 9 before"):
        replay(racy, str(more))


def test_a_divergence_names_the_python_that_made_the_token() -> None:
    counterexample = explore(racy).counterexample
    assert counterexample is not None
    token = Token.parse(counterexample.token)
    elsewhere = Token(
        token.fingerprint, token.settings, token.plan, token.options, 1, token.code, "3.0"
    )
    with pytest.raises(Divergence, match=r"made on Python 3\.0"):
        replay(racy, str(elsewhere))


def test_a_cancel_that_finds_nobody_is_a_divergence() -> None:
    settings = Settings(cancel="tasks")
    token = Token(fingerprint(leaky), settings, Plan(cancels=(Cancel(99, 1),)), (), 1, "HF441")
    with pytest.raises(Divergence, match="has ended before"):
        replay(leaky, str(token))


def test_a_token_that_shows_nothing_is_a_divergence() -> None:
    token = Token(fingerprint(fine), Settings(), Plan(), (), 1, "HF441")
    with pytest.raises(Divergence, match="shows nothing and not HF441"):
        replay(fine, str(token))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no token"),
        ("hf1", "is no token"),
        ("hf9.abc", "of version"),
        ("hf1.!!!", "damaged"),
        ("hf1.abcd", "damaged"),
    ],
)
def test_a_text_that_is_no_token_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadToken, match=says):
        replay(racy, text)


def test_tokens_read_back_as_they_were_written() -> None:
    token = Token(
        7,
        Settings("latency", "double", 0.25, ("reset", "eof"), True),
        Plan(((3, 1), (8, 2)), (Cancel(12, 1),)),
        (2, 3),
        40,
        "HF441",
    )
    assert Token.parse(str(token)) == token


def test_the_fingerprint_is_that_of_the_function_inside() -> None:
    @functools.wraps(racy)
    async def wrapped() -> None:
        await racy()

    class Callable_:  # noqa: N801 - an object that is called
        async def __call__(self) -> None:
            await racy()

    assert fingerprint(functools.partial(racy)) == fingerprint(racy) == fingerprint(wrapped)
    assert fingerprint(racy) != fingerprint(fine)
    assert fingerprint(Callable_()) != 0
    assert fingerprint(3) == 0


def test_exhausted_says_how_far_and_a_sample_says_that_it_is_one() -> None:
    whole = explore(fine)
    assert whole.exhausted
    assert whole.complete
    assert "all there are" in str(whole)
    assert whole.replayable

    async def wide() -> None:
        await asyncio.gather(*(asyncio.sleep(0.01 * n) for n in range(1, 8)))

    some = explore(wide, schedules=10)
    assert not some.exhausted
    assert some.schedules == 10
    assert "a sample" in str(some)
    level = explore(wide, schedules=400)
    assert level.exhausted
    assert not level.complete
    assert level.bound >= 1
    assert f"up to bound {level.bound}" in str(level)


def test_seconds_bound_the_time_and_progress_is_told() -> None:
    told: list[Progress] = []

    async def wide() -> None:
        await asyncio.gather(*(asyncio.sleep(0.01 * n) for n in range(1, 12)))

    exploration = explore(wide, seconds=0.05, progress=told.append)
    assert exploration.schedules > 0
    assert told[-1].schedules == exploration.schedules
    assert told[-1].of is None
    assert told[-1].found is None


def test_progress_says_what_was_found() -> None:
    told: list[Progress] = []
    explore(racy, progress=told.append)
    assert told[-1].found is not None
    assert "AssertionError" in told[-1].found


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cancel": "often"}, "cancel='often'"),
        ({"cancel": []}, "cancel="),
        ({"model": "loose"}, "model='loose'"),
        ({"strategy": "luck"}, "strategy='luck'"),
        ({"faults": ["gremlins"]}, "'gremlins' is not one of"),
        ({"faults": "gremlins"}, "'gremlins' is not one of"),
        ({"stall": -1}, "stall=-1"),
        ({"schedules": 0}, "schedules=0"),
        ({"seconds": -1.0}, "seconds=-1.0"),
        ({"workers": 0}, "workers=0"),
    ],
)
def test_bad_use_is_refused_with_what_to_do(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("[", r"\[")):
        explore(fine, **options)


def test_what_is_no_async_function_is_refused() -> None:
    with pytest.raises(TypeError, match="async function"):
        explore(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="async function"):
        explore(lambda: None)  # type: ignore[arg-type, return-value]


def test_clocks_are_virtual_inside_and_real_outside() -> None:
    read: list[tuple[float, ...]] = []

    async def program() -> None:
        before = time.monotonic()
        started = time.time()
        await asyncio.sleep(3_600)
        loop = asyncio.get_running_loop()
        read.append(
            (time.monotonic() - before, time.time() - started, time.monotonic() - loop.time())
        )
        assert time.perf_counter_ns() > 3_600_000_000_000

    real = time.time()
    assert explore(program).counterexample is None
    assert time.time() - real < 600
    assert read == [(3_600.0, 3_600.0, 0.0)]
    assert time.monotonic is not None
    assert time.monotonic.__module__ == "time"


def test_lots_are_the_same_in_each_run_and_the_callers_own_go_on() -> None:
    drawn: list[float] = []

    async def program() -> None:
        drawn.append(random.random())
        await racy()

    random.seed(5)
    expected = random.random()
    random.seed(5)
    explore(program)
    assert len(set(drawn)) == 1
    assert random.random() == expected


def test_the_collector_is_as_it_was_afterwards() -> None:
    frozen = gc.get_freeze_count()
    assert gc.isenabled()
    explore(fine)
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
    gc.disable()
    try:
        explore(fine)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_explore_works_inside_a_running_loop() -> None:
    async def outer() -> bool:
        loop = asyncio.get_running_loop()
        exploration = explore(racy)
        assert asyncio.get_running_loop() is loop
        return exploration.counterexample is not None

    assert asyncio.run(outer())
