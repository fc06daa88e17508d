"""Report 2 in words: a child, its last words, and who may end it."""

from __future__ import annotations

from functools import partial

from tests.acceptance.situations import child
from tests.acceptance.situations.child import Seen
from tests.acceptance.trial import Explored, Once
from tests.acceptance.wording import Context, part, promise, when

# The explorer's own word for a situation that does not come to its end.
_STUCK = "HF431"
# A child's exit and the ends of its pipes come in many orders, and each run has many steps.
_FEWER = 25


def _kind(context: Context) -> child.Kind:
    kind: child.Kind = part(context, "Companion")
    return kind


@when("it gets two requests")
def it_is_two_requests(context: Context) -> None:
    context.trial = Explored(partial(child.two_requests, _kind(context)), schedules=_FEWER)


@when("the child writes what is no text, and a line of any length")
def the_child_is_noisy(context: Context) -> None:
    situation = partial(child.noisy, _kind(context))
    context.trial = Explored(situation, shows=(_STUCK,), schedules=_FEWER)


@when("a real child writes a line of {megabytes:d} megabytes")
def a_flood_of_noise(context: Context, megabytes: int) -> None:
    context.trial = Once.of(child.flood_of_noise(_kind(context), megabytes))


@when("the child writes more at its end than a pipe holds")
def it_has_much_to_say(context: Context) -> None:
    situation = partial(child.requested_to_end, _kind(context))
    context.trial = Explored(situation, shows=(_STUCK,), schedules=_FEWER)


@when("the child ends by itself")
def it_ends_by_itself(context: Context) -> None:
    context.trial = Explored(partial(child.ended_by_itself, _kind(context)), schedules=_FEWER)


@when("it is closed")
def it_is_closed(context: Context) -> None:
    context.trial = Explored(partial(child.closed, _kind(context)), schedules=_FEWER)


@when("a {first} and a {second} come at the same time")
def at_once(context: Context, first: str, second: str) -> None:
    situation = partial(child.at_once, _kind(context), first, second)
    context.trial = Explored(situation, schedules=_FEWER)


@when("the task that starts the child is cancelled at any step")
def cancelled_start(context: Context) -> None:
    situation = partial(child.cancelled_start, _kind(context))
    context.trial = Explored(situation, cancel=True)


@when("a real grandchild holds the pipes, and it is closed")
def with_a_grandchild(context: Context) -> None:
    context.trial = Once.of(child.with_a_grandchild(_kind(context)))


@promise("every question is answered", otherwise="a question is never answered")
def every_question_is_answered(seen: Seen) -> None:
    assert seen.answers == 2


@promise("the noise takes less than {megabytes:d} megabytes", otherwise="the noise is kept")
def bounded_memory(seen: Seen, megabytes: int) -> None:
    assert seen.memory < megabytes << 20, f"{seen.memory:,} bytes"


@promise("its last output is read, and it was not killed", otherwise="its last output is lost")
def its_last_words_are_heard(seen: Seen) -> None:
    assert seen.child_exit is not None
    heard = (seen.child_exit.status.ok, seen.child_exit.last_line)
    assert heard == (True, "saved"), str(seen.child_exit)


@promise("the reason of its end and its exit code are known", otherwise="why it went is not known")
def why_it_went(seen: Seen) -> None:
    assert seen.child_exit is not None, "its exit is unknown"
    known = (seen.child_exit.status.code, seen.child_exit.stderr)
    assert known == (3, "I cannot go on\n"), str(seen.child_exit)


@promise(
    "no task is pending when close has returned",
    otherwise="a task is still pending when close has returned",
)
def nothing_is_pending(seen: Seen) -> None:
    assert seen.pending == 0, f"{seen.pending} pending"


@promise("every running child is tracked", otherwise="a child that is not tracked is running")
def no_child_too_many(seen: Seen) -> None:
    assert seen.started <= 2, f"{seen.started} were started, for one start and one restart"


@promise("no orphan is left", otherwise="an orphan is left")
def no_orphan(seen: Seen) -> None:
    """The explorer itself finds a process that is left when the situation has ended."""


@promise(
    "close returns in time, and the whole family is gone",
    otherwise="close does not return, or a process of the family is left",
)
def the_family_is_gone(seen: Seen) -> None:
    assert seen.in_time, "close did not return"
    assert seen.alive == 0, f"{seen.alive} of 2 run on"
