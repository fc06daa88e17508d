"""A stub that stands for I/O: something outside answers, and nobody knows when.

It opens no descriptor and starts no thread. On the explored loop the answer is an event on a
channel of its own, on the stock loop with delays it takes a random time, elsewhere one turn.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar, overload

from holdfast.explore.loop import ExploredLoop
from holdfast.explore.stock import StockLoop

__all__ = ["latency"]

T = TypeVar("T")


@overload
async def latency(value: None = None, *, name: str = "latency") -> None: ...
@overload
async def latency(value: T, *, name: str = "latency") -> T: ...
async def latency(value: T | None = None, *, name: str = "latency") -> T | None:
    """Wait as for I/O, then give `value`. In model `strict` the answer comes when the loop has
    nothing else to do, and may be late by the stall; in model `latency` it comes at any time.

    >>> import asyncio
    >>> async def fetch(url: str) -> str:
    ...     return await latency(f"the page at {url}", name=url)
    >>> asyncio.run(fetch("example.org"))
    'the page at example.org'
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, ExploredLoop):
        await _from_outside(loop, name)
    elif isinstance(loop, StockLoop):
        await asyncio.sleep(loop.answer_time())
    else:
        await asyncio.sleep(0)
    return value


async def _from_outside(loop: ExploredLoop, name: str) -> None:
    answer = loop.create_future()
    channel = loop.channel(name)
    channel.post(lambda: loop.enqueue(_come, answer), label=f"the answer to {name}")
    try:
        await answer
    finally:
        channel.clear()  # whoever does not wait any more does not get it either


def _come(answer: asyncio.Future[None]) -> None:
    # A cancel may have come after the event and before this handle.
    if not answer.done():
        answer.set_result(None)
