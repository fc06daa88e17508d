"""What an exploration gives back, and that a token replays it exactly."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import random
import sys
import time
from dataclasses import fields
from typing import Any

import pytest

from handfast import pytest_plugin
from handfast._explore.campaign import Progress
from handfast._explore.replay import line_of
from handfast._explore.search.plan import Cancel, Options, Plan, Record, Settings
from handfast._explore.search.shrink import shrink
from handfast._explore.token import Token, fingerprint
from handfast.explore import BadToken, Divergence, Uncontrolled, explore, replay, victim

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


def test_a_changed_program_is_reported_as_changed() -> None:
    counterexample = explore(racy).counterexample
    assert counterexample is not None
    with pytest.raises(Divergence, match="code has changed"):
        replay(fine, counterexample.token)


def test_the_usual_causes_are_named_for_a_program_that_is_not_deterministic() -> None:
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


def test_a_divergence_names_the_choice() -> None:
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


def test_a_cancel_that_meets_no_task_is_a_divergence() -> None:
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
        ("", "is not a token"),
        ("hf1", "is not a token"),
        ("hf9.abc", "of version"),
        ("hf1.!!!", "damaged"),
        ("hf1.abcd", "damaged"),
    ],
)
def test_a_text_that_is_no_token_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadToken, match=says):
        replay(racy, text)


def test_a_token_of_a_model_that_no_longer_exists_is_refused_by_its_name() -> None:
    token = Token(7, Settings("wild"), Plan(((3, 1),)), (2,), 40, "HF441")  # type: ignore[arg-type]
    with pytest.raises(BadToken, match="made with model 'wild', which no longer exists"):
        replay(racy, str(token))


def test_tokens_read_back_as_they_were_written() -> None:
    token = Token(
        7,
        Settings("latency", "double", 0.25, ("reset", "eof")),
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


def test_the_summary_distinguishes_all_schedules_a_bound_and_a_sample() -> None:
    whole = explore(fine)
    assert whole.exhausted
    assert whole.complete
    assert str(whole) == f"nothing found\nall {whole.schedules} schedules"
    assert whole.replayable

    async def wide() -> None:
        await asyncio.gather(*(asyncio.sleep(0.01 * n) for n in range(1, 8)))

    some = explore(wide, schedules=10)
    assert not some.exhausted
    assert some.schedules == 10
    assert "a sample of 10 schedules" in str(some)
    level = explore(wide, schedules=400)
    assert level.exhausted
    assert not level.complete
    assert level.bound >= 1
    others = level.schedules - level.within
    changes = "1 change" if level.bound == 1 else f"{level.bound} changes"
    size = f"all {level.within} schedules with at most {changes}, plus {others} random ones"
    assert level.summary == f"{size}; some orders of late timers are not among them"


def test_a_program_without_choices_has_one_schedule() -> None:
    async def alone() -> None:
        await asyncio.sleep(1)

    assert explore(alone).summary == "nothing here can be reordered: 1 schedule"


def test_what_was_not_tested_is_named_with_the_argument_that_tests_it() -> None:
    assert explore(fine).not_checked == ("cancellation was not tested; add cancel=...",)
    assert explore(fine, cancel=True).not_checked == ()


def test_the_old_name_of_a_strategy_is_answered_with_the_new_one() -> None:
    with pytest.raises(ValueError, match="strategy='dpor' is now called 'states'"):
        explore(fine, strategy="dpor")


def test_explore_takes_every_option() -> None:
    parameters = inspect.signature(explore).parameters
    options = {field.name: field.default for field in fields(Options)}
    taken = {name: each.default for name, each in parameters.items() if name in options}
    assert taken == options
    assert parameters.keys() - options == {"async_fn", "progress"}


def test_the_help_of_the_marker_names_every_option() -> None:
    names = {field.name for field in fields(Options)} - {"cluster"}
    assert [name for name in names if f"{name}=" not in pytest_plugin._MARKER] == []


@pytest.mark.parametrize("strategy", ["portfolio", "random"])
def test_the_program_runs_for_search_confirmation_and_shrinking_only(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 0
    tried = 0

    async def program() -> None:
        nonlocal runs
        runs += 1
        await racy()

    def counted(failing: Record, attempt: Any, **options: Any) -> Record:
        def one(plan: Plan) -> Record:
            nonlocal tried
            tried += 1
            plans.append((plan.choices, plan.cancels, plan.observe))
            return attempt(plan)  # type: ignore[no-any-return]

        best = shrink(failing, one, **options)
        shrunk.append(best is not failing)
        return best

    plans: list[object] = []
    shrunk: list[bool] = []
    monkeypatch.setattr("handfast._explore.campaign.shrink", counted)
    result = explore(program, strategy=strategy)
    found = result.counterexample
    assert found is not None
    assert runs == result.schedules + 1 + tried + sum(shrunk)
    assert len(set(plans)) == len(plans)
    assert ((), (), True) not in plans, "the search has run the plain order already"
    before = runs
    assert found.departures
    assert found.timeline()
    assert found.to_html()
    assert found.report()
    assert runs == before, "results are values"
    found.replay()
    assert runs == before + 1


def test_a_replayed_counterexample_has_its_trace_from_the_one_run() -> None:
    runs = 0

    async def program() -> None:
        nonlocal runs
        runs += 1
        await racy()

    found = explore(program).counterexample
    assert found is not None
    runs = 0
    again = replay(program, found.token)
    assert again.departures == found.departures
    assert again.timeline() == found.timeline()
    assert runs == 1


def test_real_io_that_shows_a_bug_only_once_has_no_timeline() -> None:
    runs = 0

    async def once() -> None:
        nonlocal runs
        runs += 1
        assert runs > 1

    found = explore(once, real_io=True, schedules=1).counterexample
    assert found is not None
    assert (found.trace, found.departures, found.timeline()) == (None, (), "")
    assert "no timeline: real I/O did not show this a second time" in found.report()
    assert found.code in found.to_html()


def test_seconds_bound_the_time_and_progress_is_reported() -> None:
    reported: list[Progress] = []

    async def wide() -> None:
        await asyncio.gather(*(asyncio.sleep(0.01 * n) for n in range(1, 12)))

    exploration = explore(wide, seconds=0.05, progress=reported.append)
    assert exploration.schedules > 0
    assert reported[-1].schedules == exploration.schedules
    assert reported[-1].of is None
    assert reported[-1].found is None


def test_progress_has_what_was_found() -> None:
    reported: list[Progress] = []
    explore(racy, progress=reported.append)
    assert reported[-1].found is not None
    assert "AssertionError" in reported[-1].found


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cancel": "often"}, "cancel='often'"),
        ({"cancel": []}, "cancel="),
        ({"model": "loose"}, "model='loose'"),
        ({"strategy": "luck"}, "strategy='luck'"),
        ({"faults": ["gremlins"]}, "faults='gremlins': use one of"),
        ({"faults": "gremlins"}, "faults='gremlins': use one of"),
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


def test_a_refused_call_is_shown_at_the_line_of_the_program() -> None:
    async def program() -> None:
        asyncio.get_running_loop().add_signal_handler(15, print)

    with pytest.raises(Uncontrolled) as caught:
        explore(program)
    line = program.__code__.co_firstlineno + 1
    assert line_of(caught.value) == f"{__file__}:{line} in {program.__qualname__}"


def test_a_token_has_the_release_that_made_it_and_old_ones_have_less() -> None:
    here = ".".join(map(str, sys.version_info[:3]))
    made = Token(0, Settings(), Plan(), (), 1, "HF441")
    assert (made.python, made.made_elsewhere) == (here, False)
    for python, elsewhere in (
        (f"{sys.version_info.major}.{sys.version_info.minor}", False),  # a token of 0.1.0
        (f"{sys.version_info.major}.{sys.version_info.minor}.99", True),
        ("3.0", True),
    ):
        token = Token.parse(str(Token(0, Settings(), Plan(), (), 1, "HF441", python)))
        assert (token.python, token.made_elsewhere) == (python, elsewhere)
    assert str(made).startswith("hf1.")
