"""The timers of the program that are still armed (HF721)."""

from __future__ import annotations

import asyncio
import functools
import os
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from handfast._census import creation_log, owned_by, recording, take
from handfast._census.live_object import LiveObject
from tests.support.stepping import run_on


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    with recording():
        yield


class Bot:
    def tick(self) -> None: ...

    def arm(self, delay: float = 60) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, self.tick)  # armed here


def armed() -> list[LiveObject]:
    found = take(["timers"], loop=asyncio.get_running_loop()).objects
    return [live for live in found if not live.library]


def test_a_timer_that_the_program_has_set_is_listed_with_its_line_and_its_owner() -> None:
    async def main() -> None:
        timer = Bot().arm()
        [live] = armed()
        assert (live.check, live.code) == ("timers", "HF721")
        assert live.what.startswith("timer for Bot.tick, due in ")
        assert live.target is timer
        assert live.creation is not None
        assert live.creation.origin.source.endswith("# armed here")
        assert live.owner == "the test"
        assert live.waiting_at() == ()
        assert live.part_of() is None
        timer.cancel()

    with owned_by("the test"):
        asyncio.run(main())


def test_what_is_due_is_listed_in_seconds() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        far = loop.call_at(loop.time() + 1e6, print)
        [live] = armed()
        assert 999_000 < float(live.what.split()[-2]) <= 1_000_000
        far.cancel()
        past = loop.call_at(loop.time() - 1, print)
        [live] = armed()
        assert live.what == "timer for print, due now"
        past.cancel()

    asyncio.run(main())


@pytest.mark.parametrize(
    "wrapped",
    [lambda tick: tick, functools.partial, lambda tick: functools.partial(functools.partial(tick))],
    ids=["method", "partial", "partial of a partial"],
)
def test_the_callback_is_named_through_whatever_is_around_it(wrapped: Callable[[Any], Any]) -> None:
    async def main() -> str:
        timer = asyncio.get_running_loop().call_later(60, wrapped(Bot().tick))
        [live] = armed()
        timer.cancel()
        return live.what

    assert asyncio.run(main()).startswith("timer for Bot.tick,")


def test_an_object_that_can_be_called_is_named_by_its_type() -> None:
    class Alarm:
        def __call__(self) -> None: ...

    async def main() -> str:
        timer = asyncio.get_running_loop().call_later(60, Alarm())
        [live] = armed()
        timer.cancel()
        return live.what

    assert asyncio.run(main()).startswith("timer for Alarm,")


def test_a_callback_of_asyncio_that_the_program_sets_itself_is_listed() -> None:
    async def main() -> str:
        timer = asyncio.get_running_loop().call_later(60, asyncio.Event().set)
        [live] = armed()
        timer.cancel()
        return live.what

    assert asyncio.run(main()).startswith("timer for Event.set,")


async def under_a_timeout() -> None:
    async with asyncio.timeout(60):
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    "program",
    [
        lambda: asyncio.sleep(60),
        under_a_timeout,
        lambda: asyncio.wait_for(asyncio.Event().wait(), 60),
        lambda: asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=60),
    ],
    ids=["sleep", "timeout", "wait_for", "wait"],
)
def test_timers_of_asyncio_belong_to_a_library(program: Callable[[], Any]) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(program())
        await asyncio.sleep(0)
        scheduled: Any = asyncio.get_running_loop()
        assert scheduled._scheduled
        assert armed() == []
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_timer_of_a_library_belongs_to_it() -> None:
    library: dict[str, Any] = {}
    filename = os.path.join(sysconfig.get_path("purelib"), "cache", "__init__.py")
    source = "def keep(loop, expire): return loop.call_later(60, expire)"
    exec(compile(source, filename, "exec"), library)

    async def main() -> None:
        timer = library["keep"](asyncio.get_running_loop(), Bot().tick)
        creation = creation_log.creation_of(timer)
        assert creation is not None
        assert creation.package == "cache"
        assert armed() == []
        timer.cancel()

    asyncio.run(main())


def test_a_timer_that_has_no_creation_is_judged_by_its_callback() -> None:
    def ours() -> None: ...

    async def main() -> list[str]:
        loop: Any = asyncio.get_running_loop()
        # Past the patch, as before recording began.
        timers = [asyncio.TimerHandle(loop.time() + 60, call, (), loop) for call in (ours, print)]
        timers.append(asyncio.TimerHandle(loop.time() + 60, asyncio.Event().set, (), loop))
        loop._scheduled.extend(timers)
        for timer in timers:
            vars_of: Any = timer
            vars_of._scheduled = True
        found = [live.what.partition(",")[0] for live in armed()]
        for timer in timers:
            timer.cancel()
        return found

    [what] = asyncio.run(main())
    assert what.endswith("ours")


def test_a_timer_has_ended_once_it_is_cancelled_has_run_or_its_loop_is_closed() -> None:
    async def main() -> list[LiveObject]:
        ran = asyncio.Event()
        cancelled = Bot().arm()
        run = asyncio.get_running_loop().call_later(0, ran.set)
        left = Bot().arm()
        by_timer = {live.target: live for live in armed()}
        assert not any(live.ended() for live in by_timer.values())
        cancelled.cancel()
        await ran.wait()
        assert [by_timer[t].ended() for t in (cancelled, run, left)] == [True, True, False]
        assert {live.target for live in armed()} == {left}
        return [by_timer[left]]

    [left] = asyncio.run(main())
    assert left.ended()


def test_every_loop_that_was_created_while_recording_is_checked() -> None:
    loop = asyncio.new_event_loop()
    timer = loop.call_later(60, Bot().tick)
    assert timer in [t.target for t in take(["timers"]).objects if not t.library]
    other = asyncio.new_event_loop()
    assert take(["timers"], loop=other).objects == ()
    loop.close()
    assert timer not in [t.target for t in take(["timers"]).objects if not t.library]
    other.close()


def test_the_key_is_the_same_in_every_snapshot() -> None:
    async def main() -> None:
        before = take(["timers"])
        first = Bot().arm()
        second = Bot().arm()
        between = take(["timers"])
        assert len(between.since(before)) == 2
        assert take(["timers"]).since(between) == []
        first.cancel()
        second.cancel()

    asyncio.run(main())


def test_timers_are_not_checked_on_a_loop_that_does_not_list_them(kind: str) -> None:
    async def main() -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        # Known: it runs, and this task is on it.
        spots = take(["timers"], loop=loop).not_checked
        assert set(spots) <= set(take(["timers"]).not_checked)
        return spots

    expected = ("timers on a uvloop loop cannot be seen",) if kind == "uvloop" else ()
    assert run_on(kind, main()) == expected


def test_a_loop_with_an_object_of_its_own_for_the_timers_is_not_checked() -> None:
    """As trio-asyncio has it."""

    class OwnTimers(asyncio.SelectorEventLoop):
        _scheduled: Any

    loop = OwnTimers()
    usual, loop._scheduled = loop._scheduled, object()
    seen = take(["timers"], loop=loop)
    loop._scheduled = usual
    loop.close()
    assert list(seen.objects) == []
    assert seen.not_checked == ("timers on a OwnTimers cannot be seen",)
