"""The timeline in the terminal: the right lanes and arrows, never too wide, never too long."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from handfast._explore.render.rows import fold, lay_out
from handfast._explore.render.timeline import render
from handfast._explore.search.plan import Cancel, Plan
from handfast._explore.search.run import Program, run
from handfast._explore.trace.model import Trace
from handfast._explore.trace.tracer import Tracer
from handfast._explore.verdict.verdict import Verdict
from handfast._explore.victim import victim
from tests.explore.render.traced_programs import (
    CANCELS,
    EXAMPLES,
    answered_crowd,
    crowd,
    example_trace,
    traced,
)

TraceAndVerdict = tuple[Trace, Verdict | None]


def lanes(trace: Trace, verdict: Verdict | None) -> list[str]:
    """The drawing alone: from the first row to the last, without the words at the right."""
    text = render(trace, verdict, 120).split("\n\n")[1]
    rows = [line for line in text.splitlines() if "╭─" not in line]
    count = text.count("╭─")
    return [line[14 : 14 + 3 * count].rstrip() for line in rows]


# --- what it shows -----------------------------------------------------------------------------


def test_a_lost_update_is_drawn_with_its_lanes_starts_and_wake_ups() -> None:
    assert lanes(*example_trace("lost_update")) == [
        "●──┬──╮",
        "┊  ●  ┃",
        "┊  ┊  ●",
        "┊  ┊  ┊",
        "┊  ◀──┼──◆",
        "┊  ┃  ◀──◆",
        "┊  ●  ┃",
        "┊  ┊  ●",
        "┊  ◀──┼──◆",
        "┊  ┃  ◀──◆",
        "┊  ■  ┃",
        "┊     ■",
        "◀────────◆",
        "✗",
        "",
    ]


def test_a_cancel_in_the_window_strikes_a_lane_that_is_in_the_queue() -> None:
    text = render(*example_trace("window"))
    assert lanes(*example_trace("window")) == [
        "●──╮",
        "┊  ●",
        "┊  ◀──◆",
        "┼──×",
        "┊  ⊘",
        "◀─────◆",
        "✗",
        "",
    ]
    assert re.search(
        r" » cancel ─+┼──× +borrower is cancelled after it was woken and before it resumed", text
    )


def test_a_deadlock_ends_with_every_task_that_waits_forever() -> None:
    assert lanes(*example_trace("two_locks"))[-3:] == ["┊  ✗  ┊", "┊  ┊  ✗", "✗  ┊  ┊"]
    text = render(*example_trace("two_locks"))
    assert text.count("waits forever  async with second:") == 2
    assert re.search(r"▶ +\d+ │ +async with second:", text)


@pytest.mark.parametrize("name", ["lost_update", "window"])
def test_the_failing_line_is_marked_in_its_source(name: str) -> None:
    trace, verdict = example_trace(name)
    line = re.search(r":(\d+) in", verdict.where[0])
    assert line is not None
    marked = re.search(r"▶ +(\d+) │ assert ", render(trace, verdict))
    assert marked is not None
    assert marked[1] == line[1]


def test_the_verdict_comes_first_and_the_key_explains_every_sign_that_occurs() -> None:
    for name in EXAMPLES:
        trace, verdict = example_trace(name)
        text = render(trace, verdict)
        head, *_, key = text.split("\n\n")
        assert head.startswith(verdict.code)
        assert verdict.message.partition(": AssertionError")[0] in head
        for sign in "●■✗⊘◆┃┊»":
            assert sign in key or sign not in text.replace(key, ""), sign
        assert "⊘" in key or name != "window"
        assert "⊘" not in key or name == "window"


# --- how much of it ----------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    stories: list[TraceAndVerdict] = [example_trace(name) for name in EXAMPLES]
    stories.append(traced(crowd(60, 3)))
    for trace, verdict in stories:
        assert max(map(len, render(trace, verdict, width).splitlines())) <= width


def test_long_stretches_in_the_plain_order_are_folded_and_counted() -> None:
    trace, verdict = traced(answered_crowd(4, 250), Plan(choices=((700, 1),)))
    text = render(trace, verdict)
    assert len(trace.steps) > 2000
    assert len(text.splitlines()) < 50
    counted = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) steps in normal order", text)]
    assert len(counted) == 2
    rows = lay_out(trace, verdict)
    shown = sum(row.step is not None for row in fold(rows) if hasattr(row, "step"))
    assert sum(counted) + shown == sum(row.step is not None for row in rows)
    assert "» choice" in text


def test_the_lanes_continue_behind_a_fold() -> None:
    trace, verdict = traced(crowd(3, 50))
    drawn = lanes(trace, verdict)
    fold_at = next(at for at, line in enumerate(drawn) if "⋮" in line)
    assert drawn[fold_at] == "⋮  ⋮  ⋮  ⋮"
    assert drawn[fold_at + 1][0] == "┊"  # the program waits all the while


def test_hundreds_of_departures_do_not_make_it_endless() -> None:
    trace, verdict = traced(answered_crowd(4, 250), Plan(tail="random", seed=3))
    text = render(trace, verdict)
    assert sum(event.kind == "choice" for event in trace.events) > 200
    assert len(text.splitlines()) < 200
    assert re.search(r"[\d,]+ steps with [\d,]+ changes", text)
    assert re.search(r"» choice .* happens now: the answer to latency", text)


def test_tasks_without_a_lane_are_counted() -> None:
    trace, verdict = traced(crowd(60, 0))
    assert re.search(r"\d+ tasks? more without a lane", render(trace, verdict, 80))


def test_two_neighbouring_steps_are_not_worth_a_fold() -> None:
    trace, verdict = traced(answered_crowd(4, 250), Plan(choices=((700, 1), (708, 1))))
    folds = [len(row.rows) for row in fold(lay_out(trace, verdict)) if hasattr(row, "rows")]
    assert folds
    assert min(folds) > 2


# --- other endings -----------------------------------------------------------------------------


async def leaves_a_task() -> None:
    asyncio.create_task(asyncio.sleep(9), name="straggler")
    await asyncio.sleep(0)


async def leaves_a_timer() -> None:
    asyncio.get_running_loop().call_later(9, print)


async def swallows() -> None:
    async def deaf() -> None:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            await asyncio.sleep(1)

    await victim(deaf(), name="deaf")


async def drops_an_error() -> None:
    async def fails() -> None:
        raise ValueError("nobody looks")

    task = asyncio.create_task(fails(), name="failing")
    await asyncio.sleep(0.01)
    assert task.done()


@pytest.mark.parametrize(
    ("program", "plan", "code", "said"),
    [
        (leaves_a_task, Plan(), "HF102", r"at the end .* straggler +\S+ → still pending"),
        (leaves_a_timer, Plan(), "HF721", r"at the end .* left over +print"),
        (swallows, Plan(cancels=(Cancel(2, 1),)), "HF501", r"✗ +deaf +\d+ → \d+ +await"),
        (drops_an_error, Plan(), "HF601", r"✗ +failing +starts → \d+ fails +raise ValueError"),
    ],
)
def test_each_verdict_has_its_row(program: Program, plan: Plan, code: str, said: str) -> None:
    trace, verdict = traced(program, plan, CANCELS)
    assert verdict is not None
    assert verdict.code == code
    assert re.search(said, render(trace, verdict))
    assert [row.failing for row in lay_out(trace, verdict)].count(True) == 1


def test_a_task_that_runs_on_after_a_cancel_has_a_note() -> None:
    trace, verdict = traced(swallows, Plan(cancels=(Cancel(2, 1),)), CANCELS)
    text = render(trace, verdict, 120)
    assert "is cancelled while it waits at" in text
    assert re.search(r"cancelled at line \d+, still running", text)


def test_a_task_that_returns_when_it_is_cancelled_has_a_note() -> None:
    async def program() -> None:
        async def quits() -> None:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                return

        await victim(quits())

    trace, verdict = traced(program, Plan(cancels=(Cancel(2, 1),)), CANCELS)
    assert re.search(r"cancelled at line \d+, returned normally", render(trace, verdict))


def test_the_cancellation_of_an_awaited_task_is_not_that_of_the_task_that_awaits_it() -> None:
    async def program() -> None:
        task = asyncio.create_task(asyncio.sleep(1))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            await asyncio.sleep(0)

    text = render(*traced(program))
    assert re.search(r"caught CancelledError at line \d+", text)
    assert "still running" not in text


def test_the_first_line_says_what_is_wrong_and_the_second_has_the_error() -> None:
    lines = render(*example_trace("lost_update")).splitlines()
    assert lines[0] == "HF441  the program fails under this schedule"
    assert lines[1] == "  AssertionError: the balance is 105"
    assert lines[3].strip() == example_trace("lost_update")[1].advice


@pytest.mark.parametrize("broken", [lambda: False, lambda: [][1]])
def test_a_broken_invariant_is_shown_at_the_step_that_broke_it(
    broken: Callable[[], object],
) -> None:
    tracer = Tracer()
    program, settings = EXAMPLES["lost_update"]
    record = run(program, Plan(), settings, observer=tracer, invariant=broken)
    rows = lay_out(tracer.trace(), record.verdict)
    assert record.verdict is not None
    assert record.verdict.code == "HF442"
    assert [row.step for row in rows if row.failing] == [0]


def test_a_run_without_a_finding_says_so() -> None:
    trace, verdict = traced(leaves_nothing)
    text = render(trace, verdict)
    assert text.startswith("no finding in this run")
    assert "▶" not in text.split("\n\n")[0]


async def leaves_nothing() -> None:
    await asyncio.sleep(1)


def test_steps_after_the_end_of_the_program_are_marked() -> None:
    async def program() -> None:
        def again(times: int) -> None:
            if times:
                asyncio.get_running_loop().call_soon(again, times - 1)

        asyncio.get_running_loop().call_soon(again, 5)
        await asyncio.sleep(0)

    assert "the program has ended; tasks that are ready still run" in render(*traced(program))


def test_a_cancel_by_the_program_is_an_arrow_of_its_own() -> None:
    async def program() -> None:
        task = asyncio.create_task(asyncio.sleep(1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    drawn = lanes(*traced(program))
    assert "●──×" in drawn

    async def timed() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.sleep(2)

    assert "Timeout, cancels timed" in render(*traced(timed))


def test_what_comes_from_outside_is_drawn_in_its_lane() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        channel = loop.channel("wire")  # type: ignore[attr-defined]
        channel.post(lambda: future.set_result(None), label="hello", after=1)
        await future

    trace, verdict = traced(program)
    assert "◀──◇" in lanes(trace, verdict)
    assert re.search(r"outside +hello$", render(trace, verdict), re.M)


def test_what_comes_from_outside_as_a_callback_points_at_the_loop() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        channel = loop.channel("wire")  # type: ignore[attr-defined]
        enqueue = loop.enqueue  # type: ignore[attr-defined]
        channel.post(lambda: enqueue(future.set_result, None), label="the wire rings", after=1)
        await future

    trace, verdict = traced(program)
    drawn = lanes(trace, verdict)
    assert "┊  ◀──◇" in drawn
    assert "◀──◆" in drawn
    assert re.search(r"outside +the wire rings$", render(trace, verdict), re.M)


def test_tasks_started_and_woken_by_callbacks_are_named() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        tasks: list[asyncio.Task[None]] = []
        gate = asyncio.Event()

        def start() -> None:
            tasks.extend(loop.create_task(wait(), name=f"no{n}") for n in range(4))

        async def wait() -> None:
            await gate.wait()

        loop.call_soon(start)
        loop.call_later(1, gate.set)
        await asyncio.sleep(2)
        await asyncio.gather(*tasks)

    text = render(*traced(program))
    assert "start, starts no0, no1 and 2 more" in text
    assert "Event.set, wakes no0, no1 and 2 more" in text
    assert "╭──┬──" in text


def test_an_unknown_code_and_an_empty_trace_are_shown() -> None:
    trace, _ = example_trace("lost_update")
    assert render(trace, Verdict("HF000", "odd")).startswith("HF000")
    assert "nothing ran" in render(Trace(), None)
