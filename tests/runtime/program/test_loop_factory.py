"""A24: a loop that does not start, or has a clock of its own, skips and poisons nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import handfast
from handfast import BackgroundLoop
from tests.support.stepping import SteppingLoop, new_loop


async def value() -> str:
    return "value"


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def failing_factory(error: BaseException) -> Callable[[], asyncio.AbstractEventLoop]:
    """A loop on which no task can be created."""

    def refuse(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> Any:
        coro.close()
        raise error

    def new() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.set_task_factory(refuse)
        loops.append(loop)
        return loop

    loops: list[asyncio.AbstractEventLoop] = []
    new.loops = loops  # type: ignore[attr-defined]
    return new


@pytest.mark.parametrize("error", [MemoryError("none left"), RecursionError("too deep")])
def test_a_loop_that_cannot_start_is_an_error_of_the_constructor(error: Exception) -> None:
    """It would wait for ever for a thread that has ended."""
    factory = failing_factory(error)
    with pytest.raises(type(error)) as caught:
        BackgroundLoop("fails", loop_factory=factory)
    assert caught.value is error
    assert all(loop.is_closed() for loop in factory.loops)  # type: ignore[attr-defined]
    assert "fails" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("error", [MemoryError("none left"), RecursionError("too deep")])
def test_a_program_that_cannot_start_closes_its_loop(error: Exception) -> None:
    factory = failing_factory(error)
    with pytest.raises(type(error)) as caught:
        handfast.run(value, loop_factory=factory)
    assert caught.value is error
    assert all(loop.is_closed() for loop in factory.loops)  # type: ignore[attr-defined]
    assert handfast.run(value) == "value"


def test_an_interrupt_of_the_constructor_stops_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    wait = threading.Event.wait

    def interrupted(self: threading.Event, timeout: float | None = None) -> bool:
        result = wait(self, timeout)
        if threading.current_thread() is threading.main_thread():
            own = [thread for thread in threading.enumerate() if thread.name == "interrupted"]
            if own and not threads and result:
                threads.extend(own)
                raise KeyboardInterrupt
        return result

    monkeypatch.setattr(threading.Event, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        BackgroundLoop("interrupted")
    monkeypatch.undo()
    threads[0].join()


def test_a_background_loop_on_each_kind_of_loop(kind: str) -> None:
    with BackgroundLoop("kinds", loop_factory=lambda: new_loop(kind)) as background:
        assert background.submit(value).result() == "value"


def test_a_clock_that_is_patched_on_the_loop_does_not_skip_the_grace() -> None:
    """`loop.time` on the instance, a thousand times as fast and far ahead."""
    ended: list[str] = []

    def new() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        real = loop.time
        loop.time = lambda: 1e6 + 1000 * real()  # type: ignore[method-assign]
        return loop

    async def short() -> None:
        await asyncio.sleep(1)
        ended.append("short")

    async def main() -> None:
        tasks.append(asyncio.create_task(short()))

    tasks: list[asyncio.Task[None]] = []
    handfast.run(main, grace=60, timeout=600, loop_factory=new)
    assert ended == ["short"]


def test_a_virtual_clock_bounds_the_shutdown(capsys: pytest.CaptureFixture[str]) -> None:
    """Seven virtual seconds, and none of the real ones."""
    loop = SteppingLoop()

    async def stubborn() -> None:
        while True:
            try:
                await forever()
            except asyncio.CancelledError:
                pass

    async def main() -> None:
        tasks.append(asyncio.create_task(stubborn(), name="stubborn"))
        await asyncio.sleep(3)

    tasks: list[asyncio.Task[None]] = []
    handfast.run(main, timeout=7, loop_factory=lambda: loop)
    assert loop.time() == 10
    assert "'stubborn'" in capsys.readouterr().err
