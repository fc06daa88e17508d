"""The event loops of the process, as far as they can be found.

A loop is known if it was made while births were recorded, if a task of its still exists, or if it
runs here and now. Which part of it can be seen, each check asks for itself.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.census.hooks import Hook
from holdfast.census.tasks import every_task, is_looked_after, members_of

__all__ = ["hooks", "known", "unseen"]

_MADE: weakref.WeakSet[AbstractEventLoop] = weakref.WeakSet()


def known(loop: AbstractEventLoop | None = None) -> list[AbstractEventLoop]:
    """`loop` alone if it is given; else each loop that can be found, once."""
    found = {loop} if loop is not None else _all_known()
    return [each for each in found if not is_looked_after(each)]


def _all_known() -> set[AbstractEventLoop]:
    found = set(members_of(_MADE))
    found.update(task.get_loop() for task in every_task())
    running = asyncio._get_running_loop()
    if running is not None:
        found.add(running)
    return found


def unseen(what: str, attribute: str, loop: AbstractEventLoop | None) -> Iterator[str]:
    """That `what` cannot be seen, for each kind of loop without the attribute that shows it."""
    kinds = {_in_words(each) for each in known(loop) if not hasattr(each, attribute)}
    for kind in sorted(kinds):
        yield f"{what} on a {kind} cannot be seen"


def _in_words(loop: AbstractEventLoop) -> str:
    made_by = type(loop).__module__.partition(".")[0]
    return "uvloop loop" if made_by == "uvloop" else type(loop).__name__


# --- birth -------------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where loops are born."""
    yield Hook(asyncio.BaseEventLoop, "__init__", _around_init)
    uvloop = sys.modules.get("uvloop")
    if uvloop is not None:
        yield Hook(uvloop.Loop, "__init__", _around_init)


def _around_init(init: Callable[..., None]) -> Callable[..., None]:
    def noted(self: AbstractEventLoop, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        _MADE.add(self)

    return noted
