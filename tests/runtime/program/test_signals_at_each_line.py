"""A22: a second and a third signal at each line of a turn of the loop, and of the shutdown.

An exception that a handler raises in asyncio's own code loses a callback or leaves the loop marked
as running, and the shutdown waits for ever (#95571). So none may be raised there: wherever the signals
come, all tasks end in their order, and nothing waits for the deadline.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

import handfast
from tests.runtime.program.line_signals import SignalsAtLines, TracedLoop

# As many lines as a turn of the loop has here, about.
_TURN = 60


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def end_of(lines: list[int], eager: bool = False) -> tuple[str, list[str], SignalsAtLines]:
    """Run a program with tasks that take a step in each turn; its outcome, and what has ended."""
    signals = SignalsAtLines(lines)
    ended: list[str] = []

    async def child(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(0)
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async def main() -> None:
        try:
            async with handfast.Scope("work") as scope:
                scope.spawn(child("child"))
                left.append(asyncio.create_task(child("no one's")))
                signals.begin()
                await child("body")
        finally:
            ended.append("main")

    def loop_factory() -> asyncio.AbstractEventLoop:
        loop = TracedLoop()
        if eager:
            loop.set_task_factory(getattr(asyncio, "eager_task_factory", None))
        return loop

    left: list[asyncio.Task[None]] = []
    return signals.run(main, timeout=1000, loop_factory=loop_factory), sorted(ended), signals


ALL = ["body", "child", "main", "no one's"]


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("first", [0, 23, 46, 69])
def test_two_signals_within_one_turn_of_the_loop(
    first: int, eager: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """The second at each line after the first: before, while and after the loop notices that."""
    for second in range(first, first + _TURN):
        outcome, ended, signals = end_of([first, second], eager)
        assert (outcome, ended, signals.sent) == ("KeyboardInterrupt()", ALL, 2), (first, second)
        assert capfd.readouterr().err == "", (first, second)


@pytest.mark.parametrize("between", [0, 1, 40])
def test_two_more_signals_anywhere_in_the_shutdown(
    between: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """With HANDFAST_SIGNALS_AT_EACH_LINE=1 at each line, and in steps of a prime number without."""
    step = int(os.environ.get("HANDFAST_SIGNALS_AT_EACH_LINE", "97"))
    _, _, signals = end_of([0])
    for second in range(1, signals.seen, step):
        outcome, ended, signals = end_of([0, second, second + between])
        assert (outcome, ended) == ("KeyboardInterrupt()", ALL), second
        assert capfd.readouterr().err == "", second
