"""Small random programs for the proof of strictness: a few tasks that sleep, wait for each other
and cancel each other, written down as data so that a failing one can be read and made smaller.

Everything that a task does goes to the log; nothing is left over at the end.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, Literal

Op = tuple[Any, ...]
Tasks = tuple[tuple[Op, ...], ...]

Kind = Literal["mixed", "timed", "threaded"]

_DELAYS = (0.01, 0.02, 0.03)
_NESTS = ("lock", "spawn", "timeout", "gather", "shield", "semaphore", "condition")
# What each kind of program is made of, and how deep.
_KINDS: dict[Kind, tuple[tuple[str, ...], int]] = {
    "mixed": (
        (*_NESTS, "turn", "sleep", "set", "wait", "put", "get", "soon", "later", "cancel"),
        2,
    ),
    "timed": (("sleep", "sleep", "later", "turn", "timeout", "spawn", "cancel"), 1),
    "threaded": (("thread", "thread", "turn", "set", "lock", "spawn", "gather", "shield"), 1),
}


def draw(seed: int, kind: Kind) -> Tasks:
    """The program with this number."""
    draw = random.Random(seed)
    names, depth = _KINDS[kind]
    # A thread may hand over at any moment: that many schedules only a small program can bear.
    size = draw.choice((2, 2, 3, 3, 4)) if kind != "threaded" else 2
    length = (1, 2, 2, 3) if kind != "threaded" else (1,)
    return tuple(
        tuple(_op(draw, size, names, depth) for _ in range(draw.choice(length)))
        for _ in range(size)
    )


def _op(draw: random.Random, size: int, names: tuple[str, ...], depth: int) -> Op:
    name = draw.choice([name for name in names if depth > 0 or name not in _NESTS])
    if name in ("sleep", "later"):
        return name, draw.choice(_DELAYS)
    if name == "cancel":
        return name, draw.randrange(size)
    if name == "timeout":
        return name, draw.choice(_DELAYS), _op(draw, size, names, depth - 1)
    if name == "gather":
        return name, *(_op(draw, size, names, depth - 1) for _ in range(2))
    if name in _NESTS:
        return name, _op(draw, size, names, depth - 1)
    return (name,)


def program(tasks: Tasks) -> Callable[[list[str]], Coroutine[Any, Any, object]]:
    """The program as a function that writes its log."""
    return lambda log: _World(log).main(tasks)


class _World:
    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.lock = asyncio.Lock()
        self.semaphore = asyncio.Semaphore(1)
        self.condition = asyncio.Condition()
        self.event = asyncio.Event()
        self.queue: asyncio.Queue[str] = asyncio.Queue(1)
        self.tasks: list[asyncio.Task[None]] = []
        self.children: list[asyncio.Task[None]] = []

    async def main(self, tasks: Tasks) -> None:
        for number, ops in enumerate(tasks):
            self.tasks.append(asyncio.create_task(self.task(str(number), ops)))
        # A task that waits for something that never happens is a deadlock, which is an outcome too.
        while pending := [task for task in self.tasks + self.children if not task.done()]:
            await asyncio.wait(pending)

    async def task(self, who: str, ops: tuple[Op, ...]) -> None:
        try:
            for number, op in enumerate(ops):
                await self.do(f"{who}.{number}", op)
        except asyncio.CancelledError:
            self.log.append(f"{who} cancelled")
            raise
        except Exception as error:
            self.log.append(f"{who} {type(error).__name__}")

    async def do(self, who: str, op: Op) -> None:
        try:
            said = await getattr(self, f"do_{op[0]}")(who, *op[1:])
        except asyncio.CancelledError:
            self.log.append(f"{who} {op[0]} cut")
            raise
        self.log.append(f"{who} {op[0]}" if said is None else f"{who} {op[0]} {said}")

    async def do_turn(self, who: str) -> None:
        await asyncio.sleep(0)

    async def do_sleep(self, who: str, delay: float) -> None:
        await asyncio.sleep(delay)

    async def do_set(self, who: str) -> None:
        self.event.set()

    async def do_wait(self, who: str) -> None:
        await self.event.wait()

    async def do_put(self, who: str) -> None:
        await self.queue.put(who)

    async def do_get(self, who: str) -> str:
        return await self.queue.get()

    async def do_soon(self, who: str) -> None:
        asyncio.get_running_loop().call_soon(self.log.append, f"{who} called")
        await asyncio.sleep(0)

    async def do_later(self, who: str, delay: float) -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        handle = loop.call_later(delay, done.set)
        try:
            await done.wait()
        finally:
            handle.cancel()

    async def do_thread(self, who: str) -> None:
        await asyncio.to_thread(int)

    async def do_cancel(self, who: str, number: int) -> str:
        return str(self.tasks[number].cancel()) if number < len(self.tasks) else "nobody"

    async def do_lock(self, who: str, inner: Op) -> None:
        async with self.lock:
            await self.do(f"{who}.in", inner)

    async def do_semaphore(self, who: str, inner: Op) -> None:
        async with self.semaphore:
            await self.do(f"{who}.in", inner)

    async def do_spawn(self, who: str, inner: Op) -> None:
        child = asyncio.create_task(self.do(f"{who}.child", inner))
        self.children.append(child)
        await child

    async def do_timeout(self, who: str, delay: float, inner: Op) -> str:
        try:
            async with asyncio.timeout(delay):
                await self.do(f"{who}.in", inner)
        except TimeoutError:
            return "out"
        return "in time"

    async def do_gather(self, who: str, *inner: Op) -> str:
        both = [asyncio.create_task(self.do(f"{who}.{n}", op)) for n, op in enumerate(inner)]
        self.children += both
        results = await asyncio.gather(*both, return_exceptions=True)
        return " ".join(type(result).__name__ for result in results)

    async def do_shield(self, who: str, inner: Op) -> None:
        child = asyncio.create_task(self.do(f"{who}.child", inner))
        self.children.append(child)
        await asyncio.shield(child)

    async def do_condition(self, who: str, inner: Op) -> None:
        async with self.condition:
            self.condition.notify()
            await self.do(f"{who}.in", inner)
