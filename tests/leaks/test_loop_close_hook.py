"""The callback before a loop closes: called once for each loop, however it is closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from handfast._leaks.loop_close_hook import before_close

Close = Callable[[], None]


async def nothing() -> None: ...


def by_asyncio_run() -> None:
    asyncio.run(nothing())


def by_runner() -> None:
    with asyncio.Runner() as runner:
        runner.run(nothing())


def by_hand() -> None:
    loop = asyncio.new_event_loop()
    loop.run_until_complete(nothing())
    loop.close()


def by_a_thread() -> None:
    thread = threading.Thread(target=by_asyncio_run)
    thread.start()
    thread.join()


@pytest.mark.parametrize("close", [by_asyncio_run, by_runner, by_hand, by_a_thread])
def test_each_loop_is_seen_once_and_before_it_closes(close: Close) -> None:
    seen: list[bool] = []
    with before_close(lambda loop: seen.append(loop.is_closed())):
        close()
    assert seen == [False]


def test_on_uvloop_as_well() -> None:
    uvloop = pytest.importorskip("uvloop")
    seen: list[str] = []
    with before_close(lambda loop: seen.append(type(loop).__module__)):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(nothing())
        loop = uvloop.new_event_loop()
        loop.close()
    assert seen == ["uvloop", "uvloop"]


def test_a_loop_that_is_closed_twice_is_seen_once() -> None:
    seen: list[object] = []
    with before_close(seen.append):
        loop = asyncio.new_event_loop()
        loop.close()
        loop.close()
    assert seen == [loop]


def test_a_runner_that_never_ran_has_no_loop() -> None:
    seen: list[object] = []
    with before_close(seen.append):
        asyncio.Runner().close()
    assert seen == []


def test_after_the_block_nothing_is_called() -> None:
    seen: list[object] = []
    before = asyncio.Runner.close, asyncio.BaseEventLoop.close
    with before_close(seen.append):
        pass
    by_asyncio_run()
    assert seen == []
    assert (asyncio.Runner.close, asyncio.BaseEventLoop.close) == before


@pytest.mark.parametrize("close", [by_asyncio_run, by_hand])
def test_a_callback_that_fails_keeps_no_loop_open(close: Close) -> None:
    seen: list[asyncio.AbstractEventLoop] = []

    def look(loop: asyncio.AbstractEventLoop) -> None:
        seen.append(loop)
        raise LookupError("nothing to see")

    with before_close(look), pytest.raises(LookupError):
        close()
    assert [loop.is_closed() for loop in seen] == [True]
