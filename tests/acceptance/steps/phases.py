"""Report 4 in words: phases over a stream, what they leave, and what the report offers for that."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import handfast
from examples.example import AS_PROPOSED
from examples.phases.analysis import analyze_taskgroup_error
from examples.phases.sdk import SdkError
from handfast import leaks
from tests.acceptance.situations import phases
from tests.acceptance.situations.phases import Seen, Tracked
from tests.acceptance.trial import Explored, Once
from tests.acceptance.wording import Context, part, promise, when

_FEWER = 20


def _kind(context: Context) -> phases.Kind:
    kind: phases.Kind = part(context, "PhaseOrchestrator")
    return kind


def _offered(context: Context, name: str, module: str) -> Any:
    """What the report offers, as it writes it; or as it should be."""
    written = "as_written" if context.version == AS_PROPOSED else module
    return getattr(context.example.module(written), name)


# --- what happens ------------------------------------------------------------------------------


@when("the CLI fails")
def the_cli_fails(context: Context) -> None:
    context.trial = Explored(partial(phases.failing, _kind(context)), schedules=_FEWER)


@when("the CLI fails while the phase searches")
def the_cli_fails_meanwhile(context: Context) -> None:
    situation = partial(phases.group_fails_meanwhile, _kind(context))
    context.trial = Explored(situation, schedules=_FEWER)


@when("a phase is left by {way}")
def a_phase_is_left(context: Context, way: str) -> None:
    cancel = {"a cancel": True, "a second cancel": "double"}.get(way, False)
    situation = partial(phases.left_in, _kind(context), way)
    schedules = 3 * _FEWER if cancel else _FEWER
    context.trial = Explored(situation, schedules=schedules, cancel=cancel)


@when("leaving a session fails")
def leaving_fails(context: Context) -> None:
    situation = partial(phases.two_failures, _kind(context), in_the_work=False)
    context.trial = Explored(situation, schedules=_FEWER)


@when("using a session fails, and leaving it as well")
def both_fail(context: Context) -> None:
    situation = partial(phases.two_failures, _kind(context), in_the_work=True)
    context.trial = Explored(situation, schedules=_FEWER)


@when("an error has come through two task groups")
def through_two_groups(context: Context) -> None:
    analyse = _offered(context, "analyze_taskgroup_error", "analysis")
    context.trial = Once(analyse(asyncio.run(phases.nested())))


@when("a resource is tracked")
def a_resource_is_tracked(context: Context) -> None:
    tracker = _offered(context, "ResourceTracker", "tracking")
    verify = _offered(context, "verify_cleanup_completion", "tracking")
    context.trial = Explored(lambda: phases.tracked(tracker(), verify), schedules=_FEWER)


@when("two closers overlap")
def two_closers(context: Context) -> None:
    tracker = _offered(context, "ResourceTracker", "tracking")
    context.trial = Explored(lambda: phases.closed_by_two(tracker()), schedules=_FEWER)


@when("a resource cannot be closed")
def a_stubborn_resource(context: Context) -> None:
    tracker = _offered(context, "ResourceTracker", "tracking")
    verify = _offered(context, "verify_cleanup_completion", "tracking")
    context.trial = Once.of(_made_there(tracker, verify))


async def _made_there(tracker: Any, verify: phases.Verify) -> Tracked:
    return await phases.stubborn_resource(tracker(timeout=0.05), verify)


@when("{times:d} searches end, and one is timed out")
def searches_end(context: Context, times: int) -> None:
    context.trial = Once.of(phases.searched(_kind(context), times))


@when("{times:d} phases are timed out, or cancelled, with real parts")
def many_are_cancelled(context: Context, times: int) -> None:
    context.trial = Once(leaks.stress(context.example.module("real").timed_out, times))


# --- what is promised --------------------------------------------------------------------------


@promise("its error is raised", otherwise="a success is returned")
def its_error_comes_out(seen: Seen) -> None:
    assert seen.value is None, f"the CLI has failed, and the phase says: {seen.value}"
    assert seen.error is not None
    (error,) = analyze_taskgroup_error(seen.error)["operational_errors"]
    assert isinstance(error, SdkError), repr(error)
    assert str(error) == phases.CLEANUP_WORDS


@promise("its CLI is gone when the phase is over", otherwise="its CLI outlives the phase")
def its_cli_is_gone(seen: Seen) -> None:
    assert seen.running == 0, "the phase is over, and its CLI is still there"


@promise(
    "the stream and the session are left in the task that entered them",
    otherwise="the stream is left in another task",
)
def left_where_entered(seen: Seen) -> None:
    for tasks in seen.tasks:
        assert len(tasks) in (0, 2), f"entered and left: {len(tasks)} times"
        assert len(set(tasks)) <= 1, "left in another task"


@promise("the phase is not cancelled for it", otherwise="the phase is cancelled for it")
def not_cancelled(seen: Seen) -> None:
    assert not seen.cancelled, "the phase was not cancelled by the test"


@promise("that takes less than {seconds:d} seconds", otherwise="that takes for ever")
def within_its_bound(seen: Seen, seconds: int) -> None:
    assert seen.seconds < seconds, f"{seen.seconds} s"


@promise("a cancel is raised to its sender", otherwise="a cancel is lost")
def the_cancel_goes_on(seen: Seen) -> None:
    assert seen.cancelled or seen.value is not None, repr(seen.error)


@promise(
    "it is known as an error of the clean-up, and surfaces", otherwise="it is taken for another"
)
def an_error_of_the_cleanup(seen: Seen) -> None:
    _of_provenance(seen, work=[], cleanup=[OSError])


@promise(
    "both surface, each known by where it was raised", otherwise="one of them is taken for another"
)
def both_surface(seen: Seen) -> None:
    _of_provenance(seen, work=[PermissionError], cleanup=[OSError])


def _of_provenance(
    seen: Seen, *, work: list[type[Exception]], cleanup: list[type[Exception]]
) -> None:
    assert seen.error is not None, f"an error was turned into {seen.value}"
    failure = handfast.split_errors(seen.error)
    kinds = [type(each) for each in failure.operational], [type(each) for each in failure.cleanup]
    assert kinds == (work, cleanup), str(kinds)


@promise("it counts as an error of the work", otherwise="it counts as clean-up")
def it_counts(analysis: dict[str, Any]) -> None:
    assert analysis["has_operational_errors"]
    assert not analysis["can_continue"]
    assert [type(each) for each in analysis["operational_errors"]] == [PermissionError]


@promise(
    "it is known while it is in use, and gone after that", otherwise="the tracker does not work"
)
def it_is_tracked(seen: Tracked) -> None:
    assert seen.error is None, repr(seen.error)
    assert (seen.while_in_use, seen.closed) == (1, 1)


@promise("it is verified that nothing is left", otherwise="it is not known what is left")
def it_is_verified(seen: Tracked) -> None:
    assert seen.verified is True, repr(seen.error)


@promise("it is closed once", otherwise="it is closed twice")
def it_is_closed_once(seen: Tracked) -> None:
    assert seen.closed == 1, f"closed {seen.closed} times"


@promise(
    "it is named: what it is, where it was created, where it waits",
    otherwise="what is left is not named",
)
def it_is_named(seen: Tracked) -> None:
    assert seen.verified is False
    assert isinstance(seen.error, handfast.errors.StragglersLeft)
    (message,) = seen.said
    for words in ("_Resource", "created at", "tracking.py", "waiting at"):
        assert words in message, message


@promise("there are as many descriptors as before", otherwise="descriptors leak")
def as_many_descriptors(seen: Seen) -> None:
    assert seen.descriptors <= 0, f"{seen.descriptors} more"


@promise("nothing grows", otherwise="something grows")
def nothing_grows(report: leaks.StressReport) -> None:
    assert report.clean, report.text()
