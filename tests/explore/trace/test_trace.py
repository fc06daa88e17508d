"""The tracer: every step of a run, with its lines, its cause and its end, as plain data."""

from __future__ import annotations

import asyncio
import functools
import json
import pickle
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import handfast
from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.search.plan import Cancel, Plan
from handfast._explore.trace import source_lines as places
from handfast._explore.trace.model import LOOP, OUTSIDE, Trace
from handfast._explore.trace.tracer import Tracer
from handfast._explore.victim import victim
from tests.explore.render.traced_programs import CANCELS, example_trace, traced


def the_loop() -> ExploredLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ExploredLoop)
    return loop


def texts(trace: Trace, lane: int) -> list[str]:
    """Where the task of a lane stood after each of its steps."""
    afters = [step.after for step in trace.steps if step.lane == lane]
    return [trace.places[trace.positions[at].place].text for at in afters if at is not None]


def test_a_lane_has_a_name_a_creation_line_and_an_end() -> None:
    trace, _ = example_trace("lost_update")
    main, first, second = trace.lanes
    assert [lane.name for lane in trace.lanes] == ["lost_update", "deposit", "deposit#2"]
    assert main.created_at is None
    assert first.created_at is not None
    assert "gather" in trace.places[first.created_at].text
    assert first.created_in == second.created_in == 0
    assert [lane.end for lane in trace.lanes] == ["fails", "returns", "returns"]
    assert main.error == "AssertionError: the balance is 105"
    assert main.raised_at is not None
    assert trace.places[main.raised_at].text.startswith("assert account")


def test_a_step_has_the_positions_of_its_task_before_and_after() -> None:
    trace, _ = example_trace("lost_update")
    mine = [step for step in trace.steps if step.lane == 1]
    assert texts(trace, 1) == ["await asyncio.sleep(delay)", "await asyncio.sleep(0.01)"]
    assert [step.before for step in mine] == [trace.lanes[1].entry, mine[0].after, mine[1].after]
    assert mine[-1].after is None
    assert mine[-1].end == "returns"
    stand = trace.positions[mine[0].after or 0]
    assert stand.call == "sleep"
    assert [trace.places[at].function for at in stand.chain] == ["deposit", "sleep"]


def test_the_cause_of_a_step_is_recorded_at_both_ends() -> None:
    for name in ("lost_update", "two_locks", "window"):
        trace, _ = example_trace(name)
        for step in trace.steps:
            for lane in step.wakes:
                later = [s for s in trace.steps if s.lane == lane and s.number > step.number]
                assert (later[0].cause, later[0].by) == ("step", step.number)


def test_timers_that_fire_together_are_not_taken_for_each_others_work() -> None:
    trace, _ = example_trace("lost_update")
    timers = [step for step in trace.steps if step.callback == "_set_result_unless_cancelled"]
    assert [(step.cause, step.by) for step in timers] == [("timer", None)] * 4
    assert [step.wakes for step in timers] == [[1], [2], [1], [2]]
    assert [round(step.time, 3) for step in timers] == [0.03, 0.03, 0.04, 0.04]


def test_a_departure_is_recorded_with_its_label() -> None:
    trace, _ = example_trace("lost_update")
    (choice,) = trace.events
    assert (choice.kind, choice.detail) == ("choice", "timers")
    expected = (
        "the loop was 20 ms late: timer sleep() of deposit fired together with the one that was due"
    )
    assert choice.label == expected
    assert trace.steps[choice.step].cause == "timer"


def test_a_cancel_in_the_window_meets_a_task_that_is_woken_already() -> None:
    trace, _ = example_trace("window")
    (cancel,) = trace.events
    assert (cancel.kind, cancel.lane, cancel.detail) == ("cancel", 1, "woken")
    cancelled = trace.steps[cancel.step]
    assert (cancelled.lane, cancelled.resumes_with, cancelled.end) == (
        1,
        "CancelledError",
        "cancelled",
    )
    assert trace.steps[cancelled.by or 0].callback == "hand_over"


async def naps() -> None:
    await victim(asyncio.sleep(0.01))


@pytest.mark.parametrize(
    ("instant", "detail", "cause"), [(1, "new", "step"), (2, "waits", "cancel")]
)
def test_a_cancel_says_in_which_state_it_met_its_victim(
    instant: int, detail: str, cause: str
) -> None:
    trace, _ = traced(naps, Plan(cancels=(Cancel(instant, 1),)), CANCELS)
    (event,) = trace.events
    assert event.detail == detail
    assert event.wakes == ([1] if detail == "waits" else [])
    cancelled = next(step for step in trace.steps if step.lane == 1 and step.end)
    assert (cancelled.cause, cancelled.resumes_with) == (cause, "CancelledError")


def test_a_cancel_by_the_program_itself_is_no_mere_wake_up() -> None:
    async def program() -> None:
        task = asyncio.create_task(asyncio.sleep(1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    trace, _ = traced(program)
    assert [step.cancels for step in trace.steps if step.cancels] == [[1]]


def test_an_error_of_the_awaited_thing_is_what_the_step_resumes_with() -> None:
    async def program() -> None:
        future: asyncio.Future[None] = the_loop().create_future()
        the_loop().call_soon(future.set_exception, OSError("no"))
        with pytest.raises(OSError, match="no"):
            await future

    trace, _ = traced(program)
    assert [step.resumes_with for step in trace.steps if step.lane == 0] == ["", "OSError"]


def hear(future: asyncio.Future[str]) -> None:
    if not future.done():
        future.set_result("!")


def test_what_arrives_from_outside_has_a_lane_of_its_own() -> None:
    async def program() -> None:
        future: asyncio.Future[str] = the_loop().create_future()
        channel = the_loop().channel("wire")
        for label in ("hello", "bye"):
            channel.post(
                lambda: the_loop().enqueue(hear, future),
                label=label,
                after=0.5,
            )
        assert await future == "!"
        await asyncio.sleep(1)

    trace, verdict = traced(program)
    assert verdict is None
    first, second = (event for event in trace.events if event.kind == "arrival")
    assert (first.lane, first.label, first.detail, first.time) == (OUTSIDE, "hello", "wire", 0.5)
    caused = [step for step in trace.steps if step.cause == "outside"]
    assert [trace.events[step.by or 0].label for step in caused] == ["hello", "bye"]
    assert [first.step, second.step] == [step.number for step in caused]


def test_an_arrival_and_a_cancel_at_one_instant_are_distinguished() -> None:
    async def program() -> None:
        the_loop().channel("wire").post(lambda: the_loop().enqueue(int), label="hello", after=1)
        the_loop().call_later(1, int)
        outcome = await victim(asyncio.sleep(9))
        assert outcome.cancelled

    for instant in range(2, 6):
        trace, _ = traced(program, Plan(cancels=(Cancel(instant, 1),)), CANCELS)
        kinds = [event.kind for event in trace.events]
        if kinds == ["arrival", "cancel"] and trace.events[0].step == trace.events[1].step:
            causes = {step.cause for step in trace.steps if step.number >= trace.events[0].step}
            assert causes >= {"outside", "cancel"}
            return
    raise AssertionError("they never came at one instant")


def test_a_departure_inside_a_step_belongs_to_that_step() -> None:
    async def program() -> None:
        async def second() -> None:
            await asyncio.sleep(0.01)

        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0.03))
            group.create_task(second())

    trace, _ = traced(program, Plan(choices=((0, 1),)))
    (event,) = trace.events
    assert (event.detail, event.inside, trace.steps[event.step].lane) == ("late", True, 2)


def test_looking_at_an_error_does_not_count_as_retrieving_it() -> None:
    async def program() -> None:
        async def fails() -> None:
            raise ValueError("nobody looks")

        task = asyncio.create_task(fails())
        await asyncio.sleep(0.01)
        assert task.done()

    trace, verdict = traced(program)
    assert verdict is not None
    assert verdict.code == "HF601"
    assert trace.lanes[1].error == "ValueError: nobody looks"


def test_the_trace_ends_with_the_verdict_and_not_with_the_final_cleanup() -> None:
    trace, _ = example_trace("two_locks")
    assert [lane.end for lane in trace.lanes] == ["", "", ""]
    assert texts(trace, 1)[-1] == "async with second:"
    assert trace.positions[trace.steps[-1].after or 0].call == "Lock.acquire"


def test_what_runs_after_the_end_of_the_program_is_marked() -> None:
    async def program() -> None:
        def again(times: int) -> None:
            if times:
                the_loop().call_soon(again, times - 1)

        again(5)
        await asyncio.sleep(0)

    trace, _ = traced(program)
    late = [step.settling for step in trace.steps]
    assert late == sorted(late)
    assert {step.callback for step in trace.steps if step.settling} == {"again"}


def test_a_task_that_is_created_during_the_final_cleanup_is_not_recorded() -> None:
    async def program() -> None:
        async def stubborn() -> None:
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.gather(asyncio.sleep(0))

        asyncio.create_task(stubborn())
        await asyncio.sleep(0)

    trace, verdict = traced(program)
    assert verdict is not None
    assert verdict.code == "HF102"
    assert len(trace.lanes) == 2


def test_callbacks_have_the_names_that_their_authors_gave_them() -> None:
    def ring(times: int) -> None:
        the_loop()

    class Bell:
        def __call__(self) -> None:
            the_loop()

    async def program() -> None:
        the_loop().call_soon(functools.partial(ring, 2))
        the_loop().call_soon(Bell())
        await asyncio.sleep(0.01)

    trace, _ = traced(program)
    named = [(s.callback, s.internal) for s in trace.steps if s.lane == LOOP and s.cause == "step"]
    assert named[:2] == [("ring", False), ("Bell", False)]
    assert all(internal for _, internal in named[2:])


def test_the_position_of_a_task_is_the_innermost_line_of_the_program_through_async_generators() -> (
    None
):
    async def ticks() -> AsyncIterator[int]:
        for tick in range(2):
            await asyncio.sleep(0.01)
            yield tick

    async def program() -> None:
        async for _ in ticks():
            pass

    trace, _ = traced(program)
    assert texts(trace, 0)[0] == "await asyncio.sleep(0.01)"


def test_a_line_without_source_is_still_a_line() -> None:
    space: dict[str, Any] = {}
    body = "import asyncio\nasync def program():\n    await asyncio.sleep(1)\n    1/0\n"
    exec(compile(body, "<made up>", "exec"), space)
    trace, _ = traced(space["program"])
    stand = trace.positions[trace.steps[0].after or 0]
    assert (trace.places[stand.place].line, trace.places[stand.place].text) == (3, "")
    assert all("made up" not in source.file for source in trace.sources)


def test_an_error_that_only_asyncio_raised_has_asyncios_line() -> None:
    trace, _ = traced(lambda: asyncio.wait_for(asyncio.sleep(2), 1))
    lane = trace.lanes[0]
    assert lane.error == "TimeoutError"
    assert trace.places[lane.raised_at or 0].file.endswith(("tasks.py", "timeouts.py"))


def test_files_keep_their_whole_name_where_no_shorter_one_leads_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    trace, _ = example_trace("lost_update")
    assert all(Path(place.file).is_absolute() for place in trace.places)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    trace, _ = example_trace("lost_update")
    assert all(Path(place.file).is_absolute() for place in trace.places)


def test_an_arrival_during_the_final_cleanup_is_not_recorded() -> None:
    async def program() -> None:
        channel = the_loop().channel("wire")
        channel.post(lambda: the_loop().enqueue(int), label="too late", after=5)
        asyncio.create_task(asyncio.sleep(9))
        await asyncio.sleep(0)

    trace, verdict = traced(program)
    assert verdict is not None
    assert trace.events == []


def test_a_task_that_no_line_of_the_program_has_made_has_no_creation_line() -> None:
    async def program() -> None:
        the_loop().call_soon(the_loop().create_task, asyncio.sleep(0))
        await asyncio.sleep(0.01)

    trace, _ = traced(program)
    assert (trace.lanes[1].created_at, trace.lanes[1].created_in) == (None, 1)


def test_a_task_made_without_the_loop_is_known_by_its_name() -> None:
    async def program() -> None:
        await asyncio.Task(asyncio.sleep(0), name="stray", loop=the_loop())

    trace, _ = traced(program)
    assert [lane.name for lane in trace.lanes] == ["program"]
    assert [step.callback for step in trace.steps if step.lane == LOOP][:2] == ["stray", "stray"]


def test_the_runtime_of_handfast_is_not_taken_for_the_program() -> None:
    async def program() -> None:
        async with handfast.Scope("all") as scope:
            scope.spawn(asyncio.sleep(1), name="nap")
            await asyncio.sleep(0)

    trace, verdict = traced(program)
    assert verdict is None
    created_at = trace.lanes[1].created_at
    assert created_at is not None
    assert trace.places[created_at].text.startswith("scope.spawn(")
    assert texts(trace, 0)[-1].startswith("async with handfast.Scope")


def test_a_trace_is_plain_data() -> None:
    for name in ("lost_update", "two_locks", "window"):
        trace, _ = example_trace(name)
        assert pickle.loads(pickle.dumps(trace)) == trace
        data = trace.as_json()
        assert json.loads(json.dumps(data)) == data


def test_the_source_of_every_line_is_in_the_trace() -> None:
    trace, _ = example_trace("window")
    lines = {(s.file, s.first + i): text for s in trace.sources for i, text in enumerate(s.lines)}
    for place in trace.places:
        assert lines[place.file, place.line].strip() == place.text


def test_a_trace_can_be_read_twice_and_before_anything_ran() -> None:
    tracer = Tracer()
    assert tracer.trace() is tracer.trace()
    assert tracer.trace().steps == []


def test_the_frames_that_end_the_search_for_a_caller_are_below_every_step() -> None:
    """A renamed function in this list would let the search run on into the code that explores."""
    below: list[Any] = []

    async def program() -> None:
        frame = sys._getframe(0).f_back
        while frame is not None:
            below.append(frame.f_code)
            frame = frame.f_back

    traced(program)
    assert all(any(code is each for each in below) for code in places._OUTERMOST)


def test_a_function_of_the_program_may_have_the_name_of_one_below_it() -> None:
    async def program() -> None:
        def drive() -> Any:
            return asyncio.create_task(asyncio.sleep(0))

        await drive()

    trace, _ = traced(program)
    created_at = trace.lanes[1].created_at
    assert created_at is not None
    assert "create_task" in trace.places[created_at].text
