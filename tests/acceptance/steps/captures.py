"""Report 1 in words: commands of users, and the captures that belong to them."""

from __future__ import annotations

from functools import partial

from tests.acceptance.situations import captures
from tests.acceptance.situations.captures import Replaced, Seen
from tests.acceptance.trial import Explored, Once
from tests.acceptance.wording import Context, part, promise, when

# A run of bash and its pipes has many steps.
_FEWER = 30


def _kind(context: Context) -> captures.Kind:
    kind: captures.Kind = part(context, "Captures")
    return kind


@when("a command comes to its end")
def a_command_ends(context: Context) -> None:
    context.trial = Explored(partial(captures.one_command, _kind(context)))


@when("the capture of a command is cancelled at any step")
def cancelled_at_any_step(context: Context) -> None:
    context.trial = Explored(
        partial(captures.cancelled_at_each_step, _kind(context)), schedules=_FEWER
    )


@when("the chat refuses what a capture sends")
def the_chat_refuses(context: Context) -> None:
    situation = partial(captures.one_command, _kind(context), refused=True)
    # The error is reported to the loop, or stays in a task: this scenario is not about that.
    context.trial = Explored(situation, schedules=_FEWER, ignore=("HF601", "HF604"))


@when("{count:d} commands of one user arrive together")
def arrive_together(context: Context, count: int) -> None:
    context.trial = Explored(partial(captures.together, _kind(context), count), schedules=_FEWER)


@when("{count:d} commands of one user follow each other")
def follow_each_other(context: Context, count: int) -> None:
    context.trial = Explored(
        partial(captures.follow_each_other, _kind(context), count), schedules=_FEWER
    )


@when("the bot stops while {users:d} users have a command running")
def the_bot_stops(context: Context, users: int) -> None:
    context.trial = Explored(
        partial(captures.closed_while_they_run, _kind(context), users), schedules=_FEWER
    )


@when("{times:d} commands replace each other on one key, and {keys:d} keys have one each")
def rapid_replacements(context: Context, times: int, keys: int) -> None:
    context.trial = Once.of(captures.replaced_rapidly(_kind(context), times, keys))


@promise("no entry is left", otherwise="an entry is left")
def no_entry_is_left(seen: Seen) -> None:
    assert seen.entries == 0, f"{seen.entries} entries, and nothing runs"


@promise(
    "only the last command goes on editing", otherwise="a command that was replaced goes on editing"
)
def only_the_last_edits(seen: Seen) -> None:
    assert set(seen.edited_later) <= {seen.last}, f"edited: {seen.edited_later}, not {seen.last}"


@promise("the last command is tracked", otherwise="the last command is not tracked")
def the_last_is_tracked(seen: Seen) -> None:
    assert seen.tracked == 1, f"{seen.tracked} entries for a command that runs"


@promise(
    "no two captures of the user run at once", otherwise="two captures of the user run at once"
)
def one_at_a_time(seen: Seen) -> None:
    assert seen.most_at_once == 1, f"{seen.most_at_once} ran at once"


@promise(
    "no capture is there when close has returned",
    otherwise="a capture is still there when close has returned",
)
def close_has_joined(seen: Seen) -> None:
    assert (seen.entries, seen.still_there) == (0, 0), f"{seen.still_there} still there"


@promise("no entry, no task and no reference is left", otherwise="an entry or a task is left")
def nothing_is_kept(left: Replaced) -> None:
    assert left.begun, "none had begun, so that nothing could be left"
    assert (left.entries, left.tasks, left.references) == (0, 0, 0), str(left)
