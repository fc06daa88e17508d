"""As reported: `_kill` clears the handle of the child, then cancels the draining task."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from contextlib import suppress

from examples.child.messages import ChildExit, ChildGone, Message

__all__ = ["Companion"]


class Companion:
    """A long-lived child that answers each line of JSON with another."""

    def __init__(self, *argv: str, grace: float = 5.0) -> None:
        self._argv = argv
        self._grace = grace
        self._lock = asyncio.Lock()
        self._proc: Process | None = None
        self._pgid: int | None = None
        self._session_id: str | None = None
        self._stderr_task: asyncio.Task[None] | None = None
        self._stderr_text = ""

    async def start(self) -> None:
        """Start the child."""
        self._proc = await asyncio.create_subprocess_exec(
            *self._argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        self._pgid = self._proc.pid
        self._stderr_task = asyncio.create_task(self._drain_stderr())

    async def _drain_stderr(self) -> None:
        while self._proc and self._proc.stderr:
            try:
                line = await self._proc.stderr.readline()
                if not line:
                    break
                self._stderr_text += line.decode()
            except Exception:
                break

    async def send(self, message: Message) -> Message:
        """Send a request and return the answer; start the child if there is none."""
        async with self._lock:
            if not self._proc:
                await self.start()
            assert self._proc is not None
            assert self._proc.stdin is not None
            assert self._proc.stdout is not None
            self._proc.stdin.write(json.dumps(message).encode() + b"\n")
            answer = await self._proc.stdout.readline()
            if not answer:
                raise ChildGone(await self._kill())
            reply: Message = json.loads(answer)
            self._session_id = reply["session"]
            return reply

    async def _kill(self) -> ChildExit | None:
        child_exit = None
        if self._proc:
            with suppress(ProcessLookupError):
                self._proc.terminate()
            try:
                async with asyncio.timeout(self._grace):
                    code = await self._proc.wait()
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.killpg(self._pgid or self._proc.pid, signal.SIGKILL)
                code = await self._proc.wait()
            child_exit = ChildExit.of(code, self._stderr_text[-65536:])
            self._proc = None
            self._pgid = None
            self._session_id = None
        if self._stderr_task:
            self._stderr_task.cancel()
            self._stderr_task = None
        return child_exit

    async def restart(self) -> None:
        """Replace the child, also while a request is pending."""
        await self._kill()
        await self.start()

    async def close(self) -> ChildExit | None:
        """End the child and return how it ended."""
        return await self._kill()
