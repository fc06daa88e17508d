"""As it should be: one object for each child, which drains it, ends it, and knows of no other."""

from __future__ import annotations

import asyncio
import json

import holdfast
from holdfast.casebook.child.farewell import ChildGone, Farewell, Message

__all__ = ["Companion"]


class Companion:
    """A child that stays: it answers each line of JSON with another."""

    def __init__(self, *argv: str, grace: float = 5.0) -> None:
        self._argv = argv
        self._grace = grace
        self._lock = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._proc: holdfast.Process | None = None
        self._session_id: str | None = None

    async def start(self) -> holdfast.Process:
        """Start the child, if there is none."""
        async with self._starting:
            if self._proc is None:
                self._proc = await holdfast.Process(*self._argv, grace=self._grace).start()
            return self._proc

    async def send(self, message: Message) -> Message:
        """Ask the child, which is started if there is none; its answer."""
        async with self._lock:
            proc = await self.start()
            try:
                answer = await self._ask(proc, json.dumps(message).encode() + b"\n")
            except asyncio.CancelledError:
                await self._kill(proc)  # or its answer would pass for that to the next question
                raise
            if not answer.endswith(b"\n"):
                raise ChildGone(await self._kill(proc))
            reply: Message = json.loads(answer)
            self._session_id = reply["session"]
            return reply

    async def _ask(self, proc: holdfast.Process, line: bytes) -> bytes:
        async with holdfast.Scope("question") as scope:
            exited = scope.spawn(self._closed_on_exit(proc))
            try:
                await proc.send(line)
                return await anext(proc.stdout.lines(limit=1 << 24), b"")
            except holdfast.ProcessGone:
                return b""
            finally:
                exited.cancel()

    async def _closed_on_exit(self, proc: holdfast.Process) -> None:
        """A grandchild may hold the pipe: then no end of output tells that the child is gone."""
        await proc.wait()
        await proc.close()

    async def _kill(self, proc: holdfast.Process) -> Farewell:
        """End this child, and no other."""
        try:
            status = await proc.close()
        finally:
            if self._proc is proc:
                self._proc = self._session_id = None
        return Farewell(status, str(proc.stderr))

    async def restart(self) -> None:
        """Another child, also while an answer is awaited."""
        await self.close()
        await self.start()

    async def close(self) -> Farewell | None:
        """End the child; how it ended."""
        return await self._kill(self._proc) if self._proc else None
