"""Fixed: one `Process` for each child, which drains and ends it."""

from __future__ import annotations

import asyncio
import json

import handfast
from examples.child.messages import ChildExit, ChildGone, Message

__all__ = ["Companion"]


class Companion:
    """A long-lived child that answers each line of JSON with another."""

    def __init__(self, *argv: str, grace: float = 5.0) -> None:
        self._argv = argv
        self._grace = grace
        self._lock = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._proc: handfast.Process | None = None
        self._session_id: str | None = None

    async def start(self) -> handfast.Process:
        """Start the child, if there is none."""
        async with self._starting:
            if self._proc is None:
                self._proc = await handfast.Process(*self._argv, grace=self._grace).start()
            return self._proc

    async def send(self, message: Message) -> Message:
        """Send a request and return the answer; start the child if there is none."""
        async with self._lock:
            proc = await self.start()
            try:
                answer = await self._ask(proc, json.dumps(message).encode() + b"\n")
            except asyncio.CancelledError:
                await self._kill(proc)  # or the next request would receive this answer
                raise
            if not answer.endswith(b"\n"):
                raise ChildGone(await self._kill(proc))
            reply: Message = json.loads(answer)
            self._session_id = reply["session"]
            return reply

    async def _ask(self, proc: handfast.Process, line: bytes) -> bytes:
        async with handfast.Scope("request") as scope:
            exited = scope.spawn(self._closed_on_exit(proc))
            try:
                await proc.send(line)
                return await anext(proc.stdout.lines(limit=1 << 24), b"")
            except handfast.errors.ProcessGone:
                return b""
            finally:
                exited.cancel()

    async def _closed_on_exit(self, proc: handfast.Process) -> None:
        """Close on exit: if a grandchild holds the pipe, there is no EOF when the child exits."""
        await proc.wait()
        await proc.close()

    async def _kill(self, proc: handfast.Process) -> ChildExit:
        """End this child, and no other."""
        try:
            status = await proc.close()
        finally:
            if self._proc is proc:
                self._proc = self._session_id = None
        return ChildExit(status, str(proc.stderr))

    async def restart(self) -> None:
        """Replace the child, also while a request is pending."""
        await self.close()
        await self.start()

    async def close(self) -> ChildExit | None:
        """End the child and return how it ended."""
        return await self._kill(self._proc) if self._proc else None
