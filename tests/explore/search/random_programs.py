"""Small random programs: tasks that ask outside, sleep, wait for each other and cancel each other,
share some things and keep others to themselves. What they share goes to the log, much of it only
at the end, so that two orders may well lead to one state.
"""

from __future__ import annotations

import asyncio
import random

from handfast.explore import latency
from tests.explore.search.recorded_search import Logging

_DELAYS = (0.01, 0.02)


def asking(seed: int) -> Logging:
    """Tasks that mostly wait for answers from outside."""
    return _program(seed, ("ask", "ask", "put", "lock", "race", "turn", "sleep"), 2)


def timed(seed: int) -> Logging:
    """Tasks that mostly wait for timers, and for each other."""
    return _program(seed, ("sleep", "sleep", "later", "timeout", "event", "turn", "cancel"), 3)


def mixed(seed: int) -> Logging:
    """Tasks that do a little of everything, in turns."""
    return _program(seed, ("turn", "put", "lock", "spawn", "event", "cancel", "race"), 2)


def _program(seed: int, does: tuple[str, ...], size: int) -> Logging:
    draw = random.Random(seed)
    plans = [[draw.choice(does) for _ in range(draw.choice((1, 2, 2)))] for _ in range(size)]
    delays = [draw.choice(_DELAYS) for _ in range(size)]

    async def program(log: list[str]) -> None:
        shared = _Shared(log, delays)
        for number, plan in enumerate(plans):
            shared.tasks.append(asyncio.create_task(shared.run(number, plan)))
        await asyncio.wait(shared.tasks)
        log.append(f"{shared.value} {shared.names}")

    return program


class _Shared:
    def __init__(self, log: list[str], delays: list[float]) -> None:
        self.log = log
        self.delays = delays
        self.lock = asyncio.Lock()
        self.event = asyncio.Event()
        self.names: list[int] = []
        self.value = 0
        self.tasks: list[asyncio.Task[None]] = []

    async def run(self, who: int, plan: list[str]) -> None:
        own = 0
        for what in plan:
            own += await getattr(self, f"do_{what}")(who) or 0
        if own > 1:
            self.log.append(f"{who}:{own}")

    async def do_turn(self, who: int) -> None:
        await asyncio.sleep(0)

    async def do_ask(self, who: int) -> int:
        await latency()
        return 1

    async def do_sleep(self, who: int) -> None:
        await asyncio.sleep(self.delays[who])
        self.names.append(who)

    async def do_put(self, who: int) -> None:
        await latency()
        self.names.append(who)

    async def do_lock(self, who: int) -> None:
        async with self.lock:
            await asyncio.sleep(0)
            self.value = self.value * 2 + who

    async def do_race(self, who: int) -> None:
        before = self.value
        await latency()
        self.value = before + who + 1

    async def do_event(self, who: int) -> int:
        if self.event.is_set():
            return 1
        self.event.set()
        return 0

    async def do_later(self, who: int) -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        timer = loop.call_later(self.delays[who], done.set_result, None)
        try:
            await done
        finally:
            timer.cancel()
        self.names.append(who)

    async def do_timeout(self, who: int) -> int:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(self.delays[who])
        except TimeoutError:
            return 1
        return 0

    async def do_spawn(self, who: int) -> None:
        await asyncio.create_task(self.do_turn(who))
        self.names.append(who)

    async def do_cancel(self, who: int) -> None:
        self.names.append(-self.tasks[who - 1].cancel())
        await asyncio.sleep(0)
