"""A stub for I/O: something outside answers, at an unknown time.

It opens no descriptor and starts no thread. On the explored loop the answer is an event on a
channel of its own. A loop that simulates delays has `answer_time`; any other
loop answers in the next iteration.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar, overload

from handfast._explore.loop.explored_loop import ExploredLoop

T = TypeVar("T")


def _at_once() -> float:
    return 0.0


@overload
async def latency(value: None = None, *, name: str = "latency") -> None: ...
@overload
async def latency(value: T, *, name: str = "latency") -> T: ...
async def latency(value: T | None = None, *, name: str = "latency") -> T | None:
    """Wait as for I/O, then return `value`.

    In model `strict` the answer arrives when the loop has nothing else to do, and may be late by the
    stall; in model `latency` it arrives at any time.

    >>> import asyncio
    >>> async def fetch(url: str) -> str:
    ...     return await latency(f"the page at {url}", name=url)
    >>> asyncio.run(fetch("example.org"))
    'the page at example.org'
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, ExploredLoop):
        await _from_outside(loop, name)
    else:
        await asyncio.sleep(getattr(loop, "answer_time", _at_once)())
    return value


async def _from_outside(loop: ExploredLoop, name: str) -> None:
    answer = loop.create_future()
    channel = loop.channel(name)
    channel.post(lambda: loop.enqueue(_arrive, answer), label=f"the answer to {name}")
    try:
        await answer
    finally:
        channel.clear()  # a task that no longer waits must not get the answer


def _arrive(answer: asyncio.Future[None]) -> None:
    # A cancel may have happened after the event and before this handle.
    if not answer.done():
        answer.set_result(None)
