"""What may happen to a child that talks, and what is seen of it. (Seed 001.)

Most of it is on the explored loop, where the child has a twin: when its exit and the end of its output
arrive is a choice, and they are two. A grandchild and a flood of noise are real.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast import explore
from holdfast.casebook.child.alive import runs
from holdfast.casebook.child.farewell import ChildGone, Farewell, Message
from holdfast.casebook.child.real import COMMAND

__all__ = [
    "Kind",
    "Seen",
    "asked_twice",
    "at_once",
    "cancelled_start",
    "closed",
    "ended_by_itself",
    "flood_of_noise",
    "noisy",
    "told_to_end",
    "with_a_grandchild",
]

# More than a pipe and the buffer of a reader hold between them.
_MUCH = 300_000
_NOISE = explore.Errs(b"\xff\xfe\0\n", whole=True), explore.Errs(b"\0" * _MUCH + b"\n", whole=True)
_SAVES = (
    explore.Errs(b"a line to save\n" * (_MUCH // 15), whole=True),
    explore.Errs(b"saved\n", whole=True),
)
_MEGABYTE = 1 << 20
_LONG = 3600


class _Companion(Protocol):
    async def start(self) -> object: ...
    async def send(self, message: Message) -> Message: ...
    async def restart(self) -> None: ...
    async def close(self) -> Farewell | None: ...


Kind = Callable[..., _Companion]


@dataclass
class Seen:
    """What a situation has shown."""

    answers: int = 0
    started: int = 0
    """How many children were started."""
    farewell: Farewell | None = None
    pending: int = 0
    """Tasks beside our own when close had returned."""
    alive: int = 0
    """Processes that ran when close had returned."""
    in_time: bool = True
    memory: int = 0
    """Bytes that reading the noise took at its peak."""


class _Children:
    """They answer each line. Told to end, one tidies up for a moment, says its last words, and goes."""

    def __init__(self, *last_words: explore.Errs, noise: tuple[explore.Errs, ...] = ()) -> None:
        self.started = 0
        self._end = explore.On(signal.SIGTERM, explore.Waits(0.05), *last_words, explore.Exits(0))
        self._noise = noise
        explore.child("companion", self._script)

    def _script(self, argv: tuple[str, ...]) -> tuple[Any, ...]:
        self.started += 1
        return self._end, explore.Hears(_answer), *self._noise, explore.Hears(_answer, lines=None)


def _answer(line: bytes) -> bytes:
    return json.dumps({"session": "one", "asked": json.loads(line)}).encode() + b"\n"


async def asked_twice(kind: Kind) -> Seen:
    """Two questions, and nothing special."""
    _Children()
    companion = kind("companion")
    answers = [await companion.send({"number": number}) for number in (1, 2)]
    await companion.close()
    assert [answer["asked"]["number"] for answer in answers] == [1, 2]
    return Seen(answers=2)


async def noisy(kind: Kind) -> Seen:
    """It writes what is no text, and a line of any length, before it hears the second question."""
    _Children(noise=_NOISE)
    companion = kind("companion")
    await companion.send({"do": "begin"})
    await companion.send({"do": "echo"})
    await companion.close()
    return Seen(answers=2)


async def told_to_end(kind: Kind) -> Seen:
    """Told to end, it writes more than a pipe holds."""
    _Children(*_SAVES)
    companion = kind("companion", grace=1.0)
    await companion.send({"do": "begin"})
    return Seen(farewell=await companion.close())


async def ended_by_itself(kind: Kind) -> Seen:
    """It says why, and exits before there is an answer."""
    explore.child("companion", explore.Hears(), explore.Errs(b"I cannot go on\n"), explore.Exits(3))
    companion = kind("companion")
    try:
        await companion.send({"do": "leave"})
    except ChildGone as gone:
        return Seen(farewell=gone.farewell)
    finally:
        await companion.close()
    return Seen(answers=1)


async def closed(kind: Kind) -> Seen:
    """It is closed after a question."""
    children = _Children()
    companion = kind("companion")
    await companion.send({"do": "begin"})
    await companion.close()
    seen = Seen(started=children.started, pending=len(asyncio.all_tasks()) - 1)
    await companion.close()
    return seen


async def at_once(kind: Kind, *deeds: str) -> Seen:
    """Two of them at the same time, the second a moment later; then it is closed."""
    children = _Children()
    companion = kind("companion")
    await companion.send({"do": "begin"})
    known: dict[str, Callable[[], Awaitable[object]]] = {
        "close": companion.close,
        "restart": companion.restart,
        "question": lambda: _asked(companion),
    }
    first, second = (known[each] for each in deeds)
    await asyncio.gather(first(), _a_moment_later(second))
    seen = Seen(started=children.started)
    await companion.close()
    return seen


async def _a_moment_later(deed: Callable[[], Awaitable[object]]) -> None:
    await asyncio.sleep(0.06)
    await deed()


async def _asked(companion: _Companion) -> None:
    """Asks, and asks again if the child is gone."""
    while True:
        try:
            await companion.send({"do": "echo"})
        except ChildGone:
            continue
        return


async def cancelled_start(kind: Kind) -> Seen:
    """Whoever starts it is cancelled, at any step."""
    children = _Children()
    companion = kind("companion")
    await explore.victim(companion.start())
    await companion.close()
    return Seen(started=children.started)


# --- with a real child -------------------------------------------------------------------------


async def flood_of_noise(kind: Kind, megabytes: int) -> Seen:
    """A line of so many megabytes, after what is no text."""
    companion = kind(*COMMAND)
    await companion.send({"do": "echo"})
    tracemalloc.start()
    try:
        await companion.send({"do": "noise", "number": megabytes * _MEGABYTE})
        return Seen(answers=2, memory=tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
        await companion.close()


async def with_a_grandchild(kind: Kind) -> Seen:
    """A grandchild holds its pipes, and does not mind SIGTERM."""
    companion = kind(*COMMAND, grace=0.1)
    answer = await companion.send({"do": "fork", "number": _LONG})
    family = (answer["pid"], answer["result"])
    try:
        async with asyncio.timeout(20):
            await companion.close()
        pending = len(asyncio.all_tasks()) - 1
        return Seen(alive=sum(map(runs, family)), pending=pending)
    except TimeoutError:
        return Seen(in_time=False)
    finally:
        for pid in filter(runs, family):  # should it have failed
            os.kill(pid, signal.SIGKILL)
