"""Call a function before any event loop closes.

pytest-asyncio, anyio, unittest and `asyncio.run` all end in `asyncio.Runner.close`; a loop that is
created by hand ends in `loop.close`. At that moment nothing is cancelled or lost yet.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from handfast._asyncio_internals import loop_of_runner, running_loop
from handfast._census.event_loops import is_judged_elsewhere
from handfast._census.patch import Patch, uvloop_patches


@contextmanager
def before_close(look: Callable[[AbstractEventLoop], None]) -> Iterator[None]:
    """Within, `look` is called with each loop that is about to close, in the closing thread."""
    closing = threading.local()

    def wrap_runner_close(close: Callable[..., None]) -> Callable[..., None]:
        def wrapper(self: Any) -> None:
            loop = loop_of_runner(self)
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

        return wrapper

    def wrap_loop_close(close: Callable[..., None]) -> Callable[..., None]:
        def wrapper(self: AbstractEventLoop) -> None:
            try:
                if getattr(closing, "loop", None) is not self:
                    _look(look, self)
            finally:
                close(self)

        return wrapper

    patches = [
        Patch(asyncio.Runner, "close", wrap_runner_close),
        Patch(asyncio.BaseEventLoop, "close", wrap_loop_close),
        *uvloop_patches(("close", wrap_loop_close)),
    ]
    for patch in patches:
        patch.install()
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.uninstall()


def _look(look: Callable[[AbstractEventLoop], None], loop: AbstractEventLoop) -> None:
    if loop.is_closed() or loop.is_running() or running_loop() is not None:
        return
    if not is_judged_elsewhere(loop):
        look(loop)
