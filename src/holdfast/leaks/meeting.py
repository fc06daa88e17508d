"""The moment before a loop closes, where all runners meet.

pytest-asyncio, anyio, unittest and `asyncio.run` all end in `asyncio.Runner.close`; who makes a
loop by hand ends in `loop.close`. What is left then is seen before it is cancelled or lost.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.census.hooks import Hook
from holdfast.census.tasks import is_looked_after

__all__ = ["before_close"]


@contextmanager
def before_close(look: Callable[[AbstractEventLoop], None]) -> Iterator[None]:
    """Within, `look` is called with each loop that is about to close, in the closing thread."""
    closing = threading.local()

    def around_runner(close: Callable[..., None]) -> Callable[..., None]:
        def met(self: Any) -> None:
            loop = self._loop
            if loop is None:
                close(self)
                return
            closing.loop = loop
            try:
                _look(look, loop)
            finally:
                try:
                    close(self)
                finally:
                    closing.loop = None

        return met

    def around_loop(close: Callable[..., None]) -> Callable[..., None]:
        def met(self: AbstractEventLoop) -> None:
            try:
                if getattr(closing, "loop", None) is not self:
                    _look(look, self)
            finally:
                close(self)

        return met

    hooks = [
        Hook(asyncio.Runner, "close", around_runner),
        Hook(asyncio.BaseEventLoop, "close", around_loop),
    ]
    # uvloop's loop has a `close` of its own, and ends up in the runner's all the same.
    if "uvloop" in sys.modules:
        hooks.append(Hook(sys.modules["uvloop"].Loop, "close", around_loop))
    for hook in hooks:
        hook.put_in()
    try:
        yield
    finally:
        for hook in reversed(hooks):
            hook.take_out()


def _look(look: Callable[[AbstractEventLoop], None], loop: AbstractEventLoop) -> None:
    if loop.is_closed() or loop.is_running() or asyncio._get_running_loop() is not None:
        return
    if not is_looked_after(loop):
        look(loop)
