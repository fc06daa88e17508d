"""A child whose every callback is written down, on whatever loop it is started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.search.plan import Plan, Record, Settings
from handfast._explore.search.run import run
from handfast._explore.simulation.processes.script import Step, child
from tests.explore.all_schedules import schedules

PIPE, DEVNULL, STDOUT = -1, -3, -2


class Callbacks(asyncio.SubprocessProtocol):
    """One word for each callback, in order."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.words.append("made")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.words.append(f"{fd}:{data.decode()}")

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.words.append(f"{fd}:{'EOF' if exc is None else type(exc).__name__}")

    def process_exited(self) -> None:
        self.words.append("exit")

    def connection_lost(self, exc: Exception | None) -> None:
        self.words.append("lost")
        self.lost.set()


Act = Callable[[asyncio.SubprocessTransport], object]


async def callbacks(*argv: str, act: Act | None = None, **pipes: Any) -> str:
    """Start it, do `act`, wait for its end, and give all callbacks back."""
    loop = asyncio.get_running_loop()
    targets: dict[str, Any] = {"stdin": None, "stdout": None, "stderr": None, **pipes}
    transport, protocol = await loop.subprocess_exec(Callbacks, *argv, **targets)
    if act is not None:
        act(transport)
    await protocol.lost.wait()
    code = transport.get_returncode()
    transport.close()
    return " ".join([*protocol.words, str(code)])


def orders(
    *script: Step,
    act: Act | None = None,
    stall: float = 0.1,
    faults: tuple[str, ...] = (),
    **pipes: Any,
) -> set[str]:
    """Every order of callbacks that the explorer lists for a child."""
    seen: set[str] = set()

    async def program() -> None:
        child("x", *script)
        seen.add(await callbacks("x", act=act, **pipes))

    for record in schedules(program, Settings(stall=stall, faults=faults)):
        assert record.verdict is None, record.verdict
    return seen


class Looking(ExploredLoop):
    """Records the leftover children, as a verdict would report them."""

    found: tuple[str, str, tuple[str, ...]] | None = None

    def settle(self, **options: Any) -> None:
        first = not self.settling
        super().settle(**options)
        if first:
            self.found = self._left_over_children()


def plainly(program: Callable[[], Any], plan: Plan | None = None, **settings: Any) -> Record:
    """One run that has to come to a good end and leave nothing behind."""
    loop = Looking()
    record = run(program, plan or Plan(observe=True), Settings(**settings), loop=loop)
    assert record.verdict is None, record.verdict
    assert loop.found is None, loop.found
    return record
