"""Report 5 in words: channels that are fetched ahead, and a program that ends."""

from __future__ import annotations

from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import handfast
from examples.example import FIXED
from examples.prefetch import as_meant
from tests.acceptance.situations import prefetch
from tests.acceptance.situations.prefetch import Seen
from tests.acceptance.trial import Explored, Once
from tests.acceptance.wording import Context, part, promise, when

_GUIDES = Path("docs", "guides")


def _explored(context: Context, situation: object) -> Explored:
    assert callable(situation)
    scoped = context.version == FIXED
    return Explored(partial(situation, part(context, "Automator"), scoped=scoped), schedules=30)


@when("it ends while two channels are being fetched")
def it_ends(context: Context) -> None:
    context.trial = _explored(context, prefetch.copies_one)


@when("it ends while two channels are being fetched, if the gather were a task")
def it_ends_as_meant(context: Context) -> None:
    situation = partial(prefetch.copies_one, as_meant.Automator, scoped=False)
    context.trial = Explored(situation, schedules=30)


@when("it asks for a channel that is being fetched")
def it_asks_for_the_same(context: Context) -> None:
    context.trial = _explored(context, prefetch.copies_both)


@when("a channel that is fetched ahead does not exist")
def a_wrong_channel(context: Context) -> None:
    # The unrequested error is reported to the loop; this scenario is about the later request.
    trial = partial(prefetch.wrong_channel, part(context, "Automator"), scoped=True)
    context.trial = Explored(trial, schedules=30, ignore=("HF604",))


@when("it is closed on its loop while two channels are being fetched")
def closed_on_the_loop(context: Context) -> None:
    situation = partial(prefetch.closed_on_the_loop, part(context, "Automator"))
    context.trial = Explored(situation, schedules=30)


@when("three threads close it within {timeout:f} seconds, and a fetch ignores its cancel")
def a_stubborn_fetch(context: Context, timeout: float) -> None:
    context.trial = Once(prefetch.stubborn(part(context, "Automator"), timeout))


@when("it is closed while a thread of its pool does not come to an end")
def a_thread_is_writing(context: Context) -> None:
    context.trial = Once(prefetch.writing(part(context, "Automator")))


@when("its owner goes away without closing it")
def its_owner_goes_away(context: Context) -> None:
    context.trial = Once(prefetch.dropped(part(context, "Automator")))


@when("the guides that the report wants are looked up")
def the_guides(context: Context) -> None:
    names = ("lifecycle.md", "cleanup.md", "resources.md")
    context.trial = Once({name: (_GUIDES / name).is_file() for name in names})


@promise("the channel is copied", otherwise="nothing is copied")
def the_channel_is_copied(seen: Seen) -> None:
    assert (seen.copied, seen.error) == (["news"], None)


@promise(
    "each of the fetches is tracked by itself",
    otherwise="its clean-up does not know how many fetches there are",
)
def each_is_tracked(seen: Seen) -> None:
    known = (seen.counted, len(seen.under_way))
    assert known == (2, 2), f"cancelled {known[0]} of {known[1]}"


@promise("no fetch continues", otherwise="a fetch continues")
def no_fetch_goes_on(seen: Seen) -> None:
    assert seen.still_under_way == [], f"{seen.still_under_way} when all was cleaned up"


@promise(
    "the fetches end first, then the session that they use",
    otherwise="the session is not closed after the fetches",
)
def the_session_is_last(seen: Seen) -> None:
    *before, last = seen.log
    assert last == "session closed", f"{seen.log}"
    assert sorted(before) == ["news ended", "sport ended", "weather ended"], f"{seen.log}"


@promise("each channel is fetched once", otherwise="a channel is fetched a second time")
def each_is_fetched_once(seen: Seen) -> None:
    assert seen.requested == ["news", "sport"], f"requested: {seen.requested}"


@promise("a request for it gets the error", otherwise="a request for it gets no error")
def the_error_comes_out(seen: Seen) -> None:
    assert isinstance(seen.error, LookupError), repr(seen.error)
    assert seen.copied == ["news"]


@promise(
    "each of them has its answer within {seconds:d} seconds, which names what is left",
    otherwise="a close is not bounded",
)
def each_has_its_answer(seen: Seen, seconds: int) -> None:
    assert seen.seconds < seconds, f"{seen.seconds} s"
    assert seen.counted == 3
    assert any("_fetch" in name for name in seen.named), f"{seen.named}"


@promise(
    "the thread is named as still running, and its result is not accepted",
    otherwise="a result is accepted after close",
)
def the_thread_is_named(seen: Seen) -> None:
    assert any(name.startswith("thread ") for name in seen.named), f"{seen.named}"
    assert isinstance(seen.error, (CancelledError, handfast.errors.HandfastError)), repr(seen.error)


@promise("a warning names it, and no fetch continues", otherwise="there is no warning")
def that_is_reported(seen: Seen) -> None:
    assert any("'automator'" in words and "_fetch" in words for words in seen.named), seen.named
    assert seen.still_under_way == []


@promise("they are all there", otherwise="one of them is missing")
def they_are_all_there(found: dict[str, bool]) -> None:
    assert all(found.values()), f"{found}"
