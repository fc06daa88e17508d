"""A real child: noisy, with a grandchild that holds its pipes, and with much to say at its end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Protocol

from holdfast.casebook.child import as_it_should_be as should_be
from holdfast.casebook.child import as_proposed as proposed
from holdfast.casebook.child import as_reported as reported
from holdfast.casebook.child.alive import runs
from holdfast.casebook.child.farewell import ChildGone, Message

__all__ = ["COMMAND", "as_it_should_be", "as_proposed", "as_reported"]

COMMAND = (sys.executable, "-I", "-S", str(Path(__file__).with_name("program.py")))
_NOISE = 1 << 21
_LINES = 4096
_LONG = 3600


class _Asked(Protocol):
    async def send(self, message: Message) -> Message: ...


class _Counted(reported.Companion):
    """Notes whom it has started."""

    def __init__(self, *argv: str, grace: float) -> None:
        super().__init__(*argv, grace=grace)
        self.pids: list[int] = []

    async def start(self) -> None:
        await super().start()
        assert self._proc
        self.pids.append(self._proc.pid)


async def as_reported() -> str:
    """It is restarted, and somebody asks meanwhile."""
    companion = _Counted(*COMMAND, grace=1.0)
    await companion.send({"do": "echo"})
    await asyncio.gather(companion.restart(), _answered(companion))
    await companion.close()
    left = sum(map(runs, companion.pids))
    return (
        f"{len(companion.pids)} children for one start and one restart; {left} runs on after close"
    )


async def as_proposed() -> str:
    """It has 4 MiB to save when it is told to end."""
    companion = proposed.Companion(*COMMAND, grace=0.2)
    await companion.send({"do": "flood", "number": _LINES})
    proc = companion._proc
    assert proc is not None
    assert proc.stderr is not None
    try:
        async with asyncio.timeout(0.8):
            ended = str(await companion.close())
    except TimeoutError:
        ended = "close has not returned"
    await proc.stderr.read()  # what nobody has read keeps the pipe open
    came = companion._words.count("saved")
    return f"of {_LINES} lines to save at the end {came} came; {ended}"


async def as_it_should_be() -> str:
    """All of that: noise, a grandchild, a restart in the middle of a question, much to save."""
    companion = should_be.Companion(*COMMAND, grace=0.2)
    noisy = await companion.send({"do": "noise", "number": _NOISE})
    family = await companion.send({"do": "fork", "number": _LONG})
    cut, _ = await asyncio.gather(
        _cut_short(companion, {"do": "think", "number": _LONG}), companion.restart()
    )
    pids = [noisy["pid"], family["result"]]
    pids.append((await companion.send({"do": "echo"}))["pid"])
    await companion.close()
    return (
        f"{_NOISE} bytes of noise read, a question cut short ({cut}), and of {len(set(pids))} "
        f"processes {sum(map(runs, pids))} run on; {await _saved()}"
    )


async def _saved() -> str:
    companion = should_be.Companion(*COMMAND)
    await companion.send({"do": "flood", "number": _LINES})
    return f"of {_LINES} lines to save at the end: {await companion.close()}"


async def _cut_short(companion: _Asked, message: Message) -> str:
    try:
        return f"an answer: {await companion.send(message)}"
    except ChildGone as error:
        return type(error).__name__


async def _answered(companion: _Asked) -> Message:
    """Asks, and asks again if the child is gone."""
    while True:
        try:
            return await companion.send({"do": "echo"})
        except ChildGone:
            pass
