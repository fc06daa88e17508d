"""Real programs in interpreters of their own, and how they end.

A program says on its standard output how far it has come, and the test sends a signal then: nobody
sleeps. Every process that it starts carries a mark in its environment, so that orphans are found.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import handfast

# Only for a program that hangs: then the test fails here and not at the end of its patience.
HANGS = 60.0

SOURCES = Path(handfast.__file__).parent.parent

PRELUDE = """
import asyncio, os, signal, sys, threading, time
import handfast

def say(*words):
    # Not print(): a signal handler may say something while the program is saying something.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

FACTORIES = {"stock": asyncio.new_event_loop}

def uv():
    import uvloop
    return uvloop.new_event_loop()
FACTORIES["uvloop"] = uv

def eager():
    loop = asyncio.new_event_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    return loop
FACTORIES["eager"] = eager

async def forever():
    await asyncio.get_running_loop().create_future()
"""


class Ended(NamedTuple):
    """Exit code (negative: the signal that ended it), all that it said, all that it complained."""

    code: int
    said: list[str]
    errors: str


class Program:
    """A child interpreter with a script; leaving it kills what is left of it."""

    def __init__(self, script: str, *options: str) -> None:
        self.mark = f"HANDFAST_TEST_MARK={uuid.uuid4().hex}"
        name, _, value = self.mark.partition("=")
        self._said: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, *options, "-c", PRELUDE + textwrap.dedent(script)],
            env={**os.environ, "PYTHONPATH": str(SOURCES), name: value},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
        for pid in self.descendants():
            os.kill(pid, signal.SIGKILL)

    def hear(self, word: str) -> None:
        """Wait until the program says a line that begins with this word."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.append(line.rstrip("\n"))
            if line.split(maxsplit=1)[0:1] == [word]:
                return
        _, errors = self._process.communicate()
        raise AssertionError(f"the program ended without saying {word!r}: {errors}")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> Ended:
        """Wait for its end."""
        out, errors = self._process.communicate(timeout=HANGS)
        return Ended(self._process.returncode, [*self._said, *out.splitlines()], errors)

    def descendants(self) -> list[int]:
        """The processes that it started and that still run, whatever their parent is now."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                marked = self.mark.encode() in (process / "environ").read_bytes()
            except OSError:  # it ended while we looked, or is not ours
                continue
            if marked and int(process.name) != self._process.pid:
                found.append(int(process.name))
        return found


def run_program(script: str, *options: str) -> Ended:
    """Run it to its end by itself."""
    with Program(script, *options) as program:
        return program.end()
