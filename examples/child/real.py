"""Real children: noisy, with a grandchild that holds the pipes, and with much output at the end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Protocol

from examples.child import as_proposed as proposed
from examples.child import as_reported as reported
from examples.child import fixed as fixed_version
from examples.child.messages import ChildGone, Message
from examples.child.process_alive import is_running

__all__ = ["COMMAND", "as_proposed", "as_reported", "fixed"]

COMMAND = (sys.executable, "-I", "-S", str(Path(__file__).with_name("program.py")))
_NOISE = 1 << 21
_LINES = 4096
_LONG = 3600


class _Companion(Protocol):
    async def send(self, message: Message) -> Message: ...


class _Counted(reported.Companion):
    """Records the pids of its children."""

    def __init__(self, *argv: str, grace: float) -> None:
        super().__init__(*argv, grace=grace)
        self.pids: list[int] = []

    async def start(self) -> None:
        await super().start()
        assert self._proc
        self.pids.append(self._proc.pid)


async def as_reported() -> str:
    """The child is restarted during a request."""
    companion = _Counted(*COMMAND, grace=1.0)
    await companion.send({"do": "echo"})
    await asyncio.gather(companion.restart(), _request(companion))
    await companion.close()
    left = sum(map(is_running, companion.pids))
    return f"{len(companion.pids)} children for one start and one restart; {left} still running after close"


async def as_proposed() -> str:
    """The child writes 4 MiB on SIGTERM."""
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
    await proc.stderr.read()  # unread data keeps the pipe open
    came = companion._stderr_text.count("saved")
    return f"of {_LINES} lines written at the end {came} were read; {ended}"


async def fixed() -> str:
    """Noise, a grandchild, a restart during a request, and much output at the end."""
    companion = fixed_version.Companion(*COMMAND, grace=0.2)
    noisy = await companion.send({"do": "noise", "number": _NOISE})
    family = await companion.send({"do": "fork", "number": _LONG})
    cut, _ = await asyncio.gather(
        _cut_short(companion, {"do": "think", "number": _LONG}), companion.restart()
    )
    pids = [noisy["pid"], family["result"]]
    pids.append((await companion.send({"do": "echo"}))["pid"])
    await companion.close()
    return (
        f"{_NOISE} bytes of noise read, a request cut short ({cut}), and of {len(set(pids))} "
        f"processes {sum(map(is_running, pids))} still running; {await _saved()}"
    )


async def _saved() -> str:
    companion = fixed_version.Companion(*COMMAND)
    await companion.send({"do": "flood", "number": _LINES})
    return f"of {_LINES} lines written at the end: {await companion.close()}"


async def _cut_short(companion: _Companion, message: Message) -> str:
    try:
        return f"an answer: {await companion.send(message)}"
    except ChildGone as error:
        return type(error).__name__


async def _request(companion: _Companion) -> Message:
    """Send a request, again if the child is gone."""
    while True:
        try:
            return await companion.send({"do": "echo"})
        except ChildGone:
            pass
