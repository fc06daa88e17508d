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

from holdfast.census import births, owned_by, recording, take
from holdfast.census.timers import TimerArmed
from tests.stepping import run_on


@pytest.fixture(autouse=True)
def recorded() -> Iterator[None]:
    with recording():
        yield


class Bot:
    def tick(self) -> None: ...

    def arm(self, delay: float = 60) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay, self.tick)  # armed here


def armed() -> list[TimerArmed]:
    found = take(["timers"], loop=asyncio.get_running_loop()).things
    return [thing for thing in found if isinstance(thing, TimerArmed)]


def test_a_timer_that_the_program_has_set_is_told_with_its_line_and_its_owner() -> None:
    async def main() -> None:
        timer = Bot().arm()
        [thing] = armed()
        assert (thing.check, thing.code) == ("timers", "HF721")
        assert thing.what.startswith("timer for Bot.tick, due in ")
        assert thing.timer is timer
        assert thing.birth is not None
        assert thing.birth.origin.source.endswith("# armed here")
        assert thing.owner == "the test"
        assert thing.stands() == ()
        assert thing.part_of is None
        timer.cancel()

    with owned_by("the test"):
        asyncio.run(main())


def test_what_is_due_is_told_in_seconds() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        far = loop.call_at(loop.time() + 1e6, print)
        [thing] = armed()
        assert 999_000 < float(thing.what.split()[-2]) <= 1_000_000
        far.cancel()
        past = loop.call_at(loop.time() - 1, print)
        [thing] = armed()
        assert thing.what == "timer for print, due now"
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
        [thing] = armed()
        timer.cancel()
        return thing.what

    assert asyncio.run(main()).startswith("timer for Bot.tick,")


def test_an_object_that_can_be_called_is_named_by_its_type() -> None:
    class Alarm:
        def __call__(self) -> None: ...

    async def main() -> str:
        timer = asyncio.get_running_loop().call_later(60, Alarm())
        [thing] = armed()
        timer.cancel()
        return thing.what

    assert asyncio.run(main()).startswith("timer for Alarm,")


def test_a_callback_of_asyncio_that_the_program_sets_itself_is_told() -> None:
    async def main() -> str:
        timer = asyncio.get_running_loop().call_later(60, asyncio.Event().set)
        [thing] = armed()
        timer.cancel()
        return thing.what

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
def test_what_asyncio_sets_for_a_task_is_the_tasks(program: Callable[[], Any]) -> None:
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


def test_a_timer_of_a_library_is_its_way_of_working() -> None:
    library: dict[str, Any] = {}
    filename = os.path.join(sysconfig.get_path("purelib"), "cache", "__init__.py")
    source = "def keep(loop, expire): return loop.call_later(60, expire)"
    exec(compile(source, filename, "exec"), library)

    async def main() -> None:
        timer = library["keep"](asyncio.get_running_loop(), Bot().tick)
        birth = births.of(timer)
        assert birth is not None
        assert birth.package == "cache"
        assert armed() == []
        timer.cancel()

    asyncio.run(main())


def test_a_timer_that_has_no_birth_is_judged_by_its_callback() -> None:
    def ours() -> None: ...

    async def main() -> list[str]:
        loop: Any = asyncio.get_running_loop()
        # Past the hook, as before recording began.
        timers = [asyncio.TimerHandle(loop.time() + 60, call, (), loop) for call in (ours, print)]
        timers.append(asyncio.TimerHandle(loop.time() + 60, asyncio.Event().set, (), loop))
        loop._scheduled.extend(timers)
        for timer in timers:
            vars_of: Any = timer
            vars_of._scheduled = True
        found = [thing.what.partition(",")[0] for thing in armed()]
        for timer in timers:
            timer.cancel()
        return found

    [what] = asyncio.run(main())
    assert what.endswith("ours")


def test_a_timer_is_over_once_it_is_cancelled_has_run_or_its_loop_is_closed() -> None:
    async def main() -> list[TimerArmed]:
        ran = asyncio.Event()
        cancelled = Bot().arm()
        run = asyncio.get_running_loop().call_later(0, ran.set)
        left = Bot().arm()
        by_timer = {thing.timer: thing for thing in armed()}
        assert not any(thing.over() for thing in by_timer.values())
        cancelled.cancel()
        await ran.wait()
        assert [by_timer[t].over() for t in (cancelled, run, left)] == [True, True, False]
        assert by_timer[cancelled].what == "timer for Bot.tick, over"
        assert {thing.timer for thing in armed()} == {left}
        return [by_timer[left]]

    [left] = asyncio.run(main())
    assert left.over()
    assert left.what == "timer for Bot.tick, over"


def test_every_loop_that_was_made_while_recording_is_looked_at() -> None:
    loop = asyncio.new_event_loop()
    timer = loop.call_later(60, Bot().tick)
    assert timer in [t.timer for t in take(["timers"]).things if isinstance(t, TimerArmed)]
    other = asyncio.new_event_loop()
    assert take(["timers"], loop=other).things == ()
    loop.close()
    assert timer not in [t.timer for t in take(["timers"]).things if isinstance(t, TimerArmed)]
    other.close()


def test_the_key_is_the_same_in_every_census() -> None:
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


def test_a_loop_that_does_not_show_its_timers_is_a_blind_spot(kind: str) -> None:
    async def main() -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        # Known: it runs, and this task is on it.
        spots = take(["timers"], loop=loop).not_checked
        assert set(spots) <= set(take(["timers"]).not_checked)
        return spots

    expected = ("timers on a uvloop loop cannot be seen",) if kind == "uvloop" else ()
    assert run_on(kind, main()) == expected
