"""One source ends, and the pull from the other goes on after the stream was left."""

import asyncio

from aiostream import stream

PACKAGE = "aiostream"
BAD = "0.7.2"
GOOD = "0.8.1"
ISSUE = "https://github.com/vxgmichel/aiostream/pull/144"
FINDING = "HF443"
OPTIONS = {}


async def program():
    open_sources = 0

    async def ticks(period, count):
        nonlocal open_sources
        open_sources += 1
        try:
            for number in range(count):
                await asyncio.sleep(period)
                yield number
        finally:
            open_sources -= 1

    async with stream.zip(ticks(0.5, 2), ticks(2, 9)).stream() as pairs:
        assert [pair async for pair in pairs] == [(0, 0), (1, 1)]
    assert open_sources == 0
