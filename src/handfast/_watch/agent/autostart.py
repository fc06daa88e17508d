"""Starts the agent in a program that does not know of it: `HANDFAST_WATCH=1 python app.py`.

`handfast_watch.pth`, beside the package, imports this module if that variable is set, and nothing at
all otherwise. The agent starts with the first event loop, so that a process without one has no thread,
as the parent of a server's workers, which forks. In a forked child this waits for a loop again.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import os
import sys
from collections.abc import Iterator
from contextlib import suppress

from handfast._census.patch import Patch, call_before

VARIABLE = "HANDFAST_WATCH"

_waiting: list[Patch] = []


def is_requested() -> bool:
    """Whether the environment switches the watch on."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def wait_for_loop() -> None:
    """Start the agent as soon as there is an event loop."""
    if not _waiting and is_requested():
        for patch in _patches():
            patch.install()
            _waiting.append(patch)


def _patches() -> Iterator[Patch]:
    start = call_before(_start)
    yield Patch(asyncio.BaseEventLoop, "__init__", start)
    # uvloop's loops do not derive from asyncio's.
    yield Patch(asyncio.Runner, "__init__", start)
    for module in (asyncio, asyncio.events):
        yield Patch(module, "set_event_loop", start)


def _start(*_: object, **__: object) -> None:
    with suppress(
        IndexError
    ):  # another thread has made a loop at the same time, and taken the last
        while True:
            _waiting.pop().uninstall()
    try:
        from handfast._watch.agent import agent

        name = os.environ.get(VARIABLE, "")
        if is_requested():
            agent.start("" if name == "1" else name)
    except Exception as error:
        complain(error)


def complain(error: Exception) -> None:
    """Say in one line why there is no watch; the program goes on."""
    with suppress(Exception):
        first = str(error).partition("\n")[0]
        sys.stderr.write(f"handfast watch: not started: {first}\n")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=wait_for_loop)
