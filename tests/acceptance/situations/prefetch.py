"""What may happen to a program that copies channels into a sheet, and what is seen. (Report 5.)

On the explored loop the program is a thread, as in reality, and its session and sheet are simulated.
How a close is bounded is seen with a real loop in a real thread.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Protocol

import handfast
from examples.prefetch.explored import SimulatedSession, SimulatedSheet
from examples.prefetch.interfaces import Connect, Rows, Sheet

__all__ = [
    "Kind",
    "Seen",
    "closed_on_the_loop",
    "copies_both",
    "copies_one",
    "dropped",
    "stubborn",
    "writing",
    "wrong_channel",
]

_LONG = 30
_PREFETCHED = ("sport", "weather")


class _Automator(Protocol):
    def process(self, channel: str, upcoming: Sequence[str] = ()) -> int: ...
    def cleanup(self) -> Any: ...


Kind = Callable[[Connect, Sheet, Any], _Automator]


@dataclass
class Seen:
    """What a situation has shown."""

    copied: Rows = field(default_factory=list)
    requested: list[str] = field(default_factory=list)
    """The channels that were fetched, as often as that happened."""
    under_way: list[str] = field(default_factory=list)
    """Who was being fetched when the program began to clean up."""
    counted: int = 0
    """How many the program says that it has cancelled."""
    still_under_way: list[str] = field(default_factory=list)
    """Who was being fetched when it had cleaned up."""
    log: list[str] = field(default_factory=list)
    """Who ended in which order."""
    error: BaseException | None = None
    seconds: float = 0.0
    named: list[str] = field(default_factory=list)
    """Who was left, by name."""


class _Session(SimulatedSession):
    """News come at once; all else takes a while, or, if it is held, for ever."""

    def __init__(self, *, held: bool = False, stubborn: bool = False) -> None:
        super().__init__()
        self.seen = Seen(requested=self.requested, log=self.log)
        self.gate = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._held = held
        self._stubborn = stubborn

    async def _answer(self, channel: str) -> None:
        self.loop = asyncio.get_running_loop()
        if channel == "gossip":
            raise LookupError("there is no such channel")
        if channel == "news" or not self._held:
            await asyncio.sleep(0.01 if channel == "news" else 0.05)
            return
        while not self.gate.is_set():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                if not self._stubborn:
                    raise


class _Sheet(SimulatedSheet):
    """It blocks the thread that writes to it: for a moment, or until the gate opens."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        super().__init__()
        self.begun = threading.Event()
        self._gate = gate

    def append(self, rows: Rows) -> int:
        self.begun.set()
        if self._gate is not None:
            assert self._gate.wait(_LONG)
        return super().append(rows)


# --- on the explored loop ----------------------------------------------------------------------


@asynccontextmanager
async def _place(scoped: bool) -> AsyncIterator[Any]:
    """What an automator runs on: the programs of the report have a loop, the right one a scope."""
    if not scoped:
        yield asyncio.get_running_loop()
        return
    async with handfast.Scope("automator", on_failure="report") as scope:
        yield scope


async def copies_one(kind: Kind, *, scoped: bool) -> Seen:
    """It copies one channel, and ends while two others are being fetched."""
    session, sheet = _Session(held=True), _Sheet()
    seen = session.seen

    def program(place: Any) -> None:
        automator = kind(lambda: session, sheet, place)
        try:
            automator.process("news", upcoming=_PREFETCHED)
        except TypeError as error:
            seen.error = error
        seen.under_way = list(session.pending)
        seen.counted = _counted(automator)
        seen.still_under_way = list(session.pending)

    async with _place(scoped) as place:
        await asyncio.to_thread(program, place)
    seen.copied = sheet.rows
    return seen


def _counted(automator: _Automator) -> int:
    """What clean-up says: a report, or a line with the number in it."""
    with redirect_stdout(StringIO()) as said:
        report = automator.cleanup()
    if isinstance(report, handfast.types.CloseReport):
        return len(report.cancelled)
    return sum(int(word) for word in said.getvalue().split() if word.isdigit())


async def copies_both(kind: Kind, *, scoped: bool) -> Seen:
    """It copies a channel, then another that may be being fetched by then."""
    session, sheet = _Session(), _Sheet()

    def program(place: Any) -> None:
        automator = kind(lambda: session, sheet, place)
        automator.process("news", upcoming=["sport"])
        automator.process("sport")
        automator.cleanup()

    async with _place(scoped) as place:
        await asyncio.to_thread(program, place)
    session.seen.copied = sheet.rows
    return session.seen


async def closed_on_the_loop(kind: Any) -> Seen:
    """A task on the loop closes it, while two channels are being fetched."""
    session, sheet = _Session(held=True), _Sheet()
    async with handfast.Scope("automator", on_failure="report") as scope:
        automator = await asyncio.to_thread(kind, lambda: session, sheet, scope)
        await asyncio.to_thread(automator.process, "news", _PREFETCHED)
        report = await automator.close()
        session.seen.named = [each.name for each in report.stragglers]
        session.seen.still_under_way = list(session.pending)
    return session.seen


async def wrong_channel(kind: Kind, *, scoped: bool) -> Seen:
    """There is no such channel: it is prefetched, and requested later."""
    session, sheet = _Session(), _Sheet()

    def program(place: Any) -> None:
        automator = kind(lambda: session, sheet, place)
        automator.process("news", upcoming=["gossip"])
        try:
            automator.process("gossip")
        except LookupError as error:
            session.seen.error = error
        automator.cleanup()

    async with _place(scoped) as place:
        await asyncio.to_thread(program, place)
    session.seen.copied = sheet.rows
    return session.seen


# --- with a loop in a thread -------------------------------------------------------------------


def stubborn(kind: Any, timeout: float) -> Seen:
    """One fetch does not mind being cancelled; three threads close at once, within a time-out."""
    session = _Session(held=True, stubborn=True)
    background = handfast.BackgroundLoop("automator")
    automator = kind(lambda: session, _Sheet(), background.scope)
    automator.process("news", upcoming=_PREFETCHED)
    reports: list[handfast.types.CloseReport] = []
    began = time.monotonic()
    closers = [
        threading.Thread(target=lambda: reports.append(automator.cleanup(timeout=timeout)))
        for _ in range(3)
    ]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join(_LONG)
    seen = session.seen
    seen.seconds = time.monotonic() - began
    seen.named = [each.name for each in reports[0].stragglers]
    seen.counted = len(reports)
    assert session.loop is not None
    session.loop.call_soon_threadsafe(session.gate.set)
    background.close(timeout=_LONG)
    return seen


def writing(kind: Any) -> Seen:
    """A thread of the pool is writing to the sheet, and does not come to an end."""
    gate = threading.Event()
    session, sheet = _Session(), _Sheet(gate)
    background = handfast.BackgroundLoop("automator")
    automator = kind(lambda: session, sheet, background.scope)
    answer: Future[int] = Future()

    def call() -> None:
        try:
            answer.set_result(automator.process("news"))
        except BaseException as error:
            answer.set_exception(error)

    caller = threading.Thread(target=call)
    caller.start()
    assert sheet.begun.wait(_LONG)
    session.seen.named = [each.name for each in background.close(timeout=0.3).stragglers]
    session.seen.error = answer.exception(_LONG)
    gate.set()
    caller.join(_LONG)
    background.close(timeout=_LONG)
    return session.seen


def dropped(kind: Any) -> Seen:
    """Its owner goes away, and has not closed it."""
    session = _Session(held=True)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        before = set(threading.enumerate())
        background = handfast.BackgroundLoop("automator")
        (thread,) = set(threading.enumerate()) - before
        automator = kind(lambda: session, _Sheet(), background.scope)
        automator.process("news", upcoming=_PREFETCHED)
        del automator, background
        gc.collect()
        thread.join(_LONG)
    session.seen.named = [str(each.message) for each in heard]
    session.seen.still_under_way = list(session.pending)
    return session.seen
