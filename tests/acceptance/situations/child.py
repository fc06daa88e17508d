"""What may happen to a child that talks, and what is seen of it. (Report 2.)

Most of it is on the explored loop, with a simulated child: when its exit and the end of its output
arrive is a choice, and they are two. A grandchild and a flood of noise are real.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from examples.child.explored import NOISE, SAVES, Children
from examples.child.messages import ChildExit, ChildGone, Message
from examples.child.process_alive import is_running
from examples.child.real import COMMAND
from handfast import explore, scripted

__all__ = [
    "Kind",
    "Seen",
    "at_once",
    "cancelled_start",
    "closed",
    "ended_by_itself",
    "flood_of_noise",
    "noisy",
    "requested_to_end",
    "two_requests",
    "with_a_grandchild",
]

_MEGABYTE = 1 << 20
_LONG = 3600


class _Companion(Protocol):
    async def start(self) -> object: ...
    async def send(self, message: Message) -> Message: ...
    async def restart(self) -> None: ...
    async def close(self) -> ChildExit | None: ...


Kind = Callable[..., _Companion]


@dataclass
class Seen:
    """What a situation has shown."""

    answers: int = 0
    started: int = 0
    """How many children were started."""
    child_exit: ChildExit | None = None
    pending: int = 0
    """Tasks beside our own when close had returned."""
    alive: int = 0
    """Processes that ran when close had returned."""
    in_time: bool = True
    memory: int = 0
    """Bytes that reading the noise took at its peak."""


async def two_requests(kind: Kind) -> Seen:
    """Two questions, and nothing special."""
    Children()
    companion = kind("companion")
    answers = [await companion.send({"number": number}) for number in (1, 2)]
    await companion.close()
    assert [answer["query"]["number"] for answer in answers] == [1, 2]
    return Seen(answers=2)


async def noisy(kind: Kind) -> Seen:
    """It writes what is no text, and a line of any length, before it hears the second question."""
    Children(noise=NOISE)
    companion = kind("companion")
    await companion.send({"do": "begin"})
    await companion.send({"do": "echo"})
    await companion.close()
    return Seen(answers=2)


async def requested_to_end(kind: Kind) -> Seen:
    """When it is terminated, it writes more than a pipe holds."""
    Children(*SAVES)
    companion = kind("companion", grace=1.0)
    await companion.send({"do": "begin"})
    return Seen(child_exit=await companion.close())


async def ended_by_itself(kind: Kind) -> Seen:
    """It says why, and exits before there is an answer."""
    scripted.child(
        "companion", scripted.Hears(), scripted.Errs(b"I cannot go on\n"), scripted.Exits(3)
    )
    companion = kind("companion")
    try:
        await companion.send({"do": "leave"})
    except ChildGone as gone:
        return Seen(child_exit=gone.child_exit)
    finally:
        await companion.close()
    return Seen(answers=1)


async def closed(kind: Kind) -> Seen:
    """It is closed after a question."""
    children = Children()
    companion = kind("companion")
    await companion.send({"do": "begin"})
    await companion.close()
    seen = Seen(started=children.started, pending=len(asyncio.all_tasks()) - 1)
    await companion.close()
    return seen


async def at_once(kind: Kind, *actions: str) -> Seen:
    """Two of them at the same time, the second a moment later; then it is closed."""
    children = Children()
    companion = kind("companion")
    await companion.send({"do": "begin"})
    known: dict[str, Callable[[], Awaitable[object]]] = {
        "close": companion.close,
        "restart": companion.restart,
        "question": lambda: _request(companion),
    }
    first, second = (known[each] for each in actions)
    await asyncio.gather(first(), _a_moment_later(second))
    seen = Seen(started=children.started)
    await companion.close()
    return seen


async def _a_moment_later(action: Callable[[], Awaitable[object]]) -> None:
    await asyncio.sleep(0.06)
    await action()


async def _request(companion: _Companion) -> None:
    """Asks, and asks again if the child is gone."""
    while True:
        try:
            await companion.send({"do": "echo"})
        except ChildGone:
            continue
        return


async def cancelled_start(kind: Kind) -> Seen:
    """The task that starts it is cancelled, at any step."""
    children = Children()
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
        return Seen(alive=sum(map(is_running, family)), pending=pending)
    except TimeoutError:
        return Seen(in_time=False)
    finally:
        for pid in filter(is_running, family):  # should it have failed
            os.kill(pid, signal.SIGKILL)
