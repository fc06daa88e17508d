"""Errors that nobody has read, and tasks that were collected while they were pending.

A task that still exists is asked; one that is gone has told the loop's exception handler on its
way out, and that is overheard. Only words are kept: an exception would hold its frames.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Hashable, Iterator
from types import TracebackType
from typing import Any

from holdfast.census import births
from holdfast.census.birth import Birth, is_library
from holdfast.census.hooks import Hook
from holdfast.census.tasks import birth_of, every_task, owner_of
from holdfast.census.thing import Thing
from holdfast.origin import Origin

__all__ = ["Loss", "Unread", "all_unread", "forget", "hooks"]


class Unread(Thing):
    """The error of a task that has ended and is still there; nobody has asked for it."""

    __slots__ = ("task",)

    check = "errors"

    def __init__(self, task: Task[Any]) -> None:
        super().__init__(birth_of(task), task.get_loop())
        self.task = task

    @property
    def key(self) -> Hashable:
        return ("error", id(self.task))

    @property
    def owner(self) -> object:
        return owner_of(self.task, self.birth)

    @property
    def code(self) -> str:
        return "HF601"

    @property
    def what(self) -> str:
        return f"{in_words(_error_of(self.task))} in task {self.task.get_name()!r}, read by nobody"

    def stands(self) -> tuple[str, ...]:
        place = raised_at(_error_of(self.task))
        return (f"raised at {place}",) if place else ()

    def over(self) -> bool:
        return not _is_unread(self.task)


class Loss(Thing):
    """What a task or a future said to the loop's exception handler when it was collected."""

    __slots__ = ("_code", "_on", "_stands", "_what")

    check = "errors"

    def __init__(
        self,
        birth: Birth | None,
        loop: AbstractEventLoop,
        code: str,
        what: str,
        stands: tuple[str, ...],
    ) -> None:
        # Nobody shall keep a loop for what was once said on it.
        super().__init__(birth)
        self._on = weakref.ref(loop)
        self._code = code
        self._what = what
        self._stands = stands

    def was_on(self, loop: AbstractEventLoop) -> bool:
        """Whether it was said on this loop."""
        return self._on() is loop

    @property
    def key(self) -> Hashable:
        return ("loss", id(self))

    @property
    def code(self) -> str:
        return self._code

    @property
    def what(self) -> str:
        return self._what

    def stands(self) -> tuple[str, ...]:
        return self._stands

    def over(self) -> bool:
        return False


_LOSSES: list[Loss] = []


def all_unread(loop: AbstractEventLoop | None = None) -> Iterator[Thing]:
    """Each error that nobody has read, of one loop or of all."""
    for task in every_task():
        if _is_unread(task) and (loop is None or task.get_loop() is loop):
            yield Unread(task)
    yield from [loss for loss in _LOSSES if loop is None or loss.was_on(loop)]


def forget() -> None:
    """What was overheard is over."""
    _LOSSES.clear()


def _is_unread(task: Task[Any]) -> bool:
    # Asking the task itself would count as reading its error.
    return task.done() and bool(getattr(task, "_log_traceback", False))


def _error_of(task: Task[Any]) -> BaseException | None:
    # The attribute of the task, since `exception()` would count as reading it.
    error = getattr(task, "_exception", None)
    return error if isinstance(error, BaseException) else None


# --- in words ----------------------------------------------------------------------------------


def in_words(error: BaseException | None) -> str:
    """An error in one line."""
    if error is None:
        return "an error"
    try:
        text = str(error).partition("\n")[0]
    except Exception:  # an error that cannot tell what it is
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def raised_at(error: BaseException | None) -> Origin | None:
    """The innermost line of the program itself, else the innermost of all."""
    own = innermost = None
    traceback: TracebackType | None = error.__traceback__ if error else None
    while traceback is not None:
        innermost = Origin(traceback.tb_frame.f_code, traceback.tb_lasti)
        if not is_library(innermost.filename):
            own = innermost
        traceback = traceback.tb_next
    return own or innermost


# --- overhearing -------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where losses are told."""
    yield Hook(asyncio.BaseEventLoop, "call_exception_handler", _around_handler)
    uvloop = sys.modules.get("uvloop")
    if uvloop is not None:
        yield Hook(uvloop.Loop, "call_exception_handler", _around_handler)


def _around_handler(handle: Callable[..., None]) -> Callable[..., None]:
    def overheard(self: AbstractEventLoop, context: dict[str, Any]) -> None:
        loss = _loss(self, context)
        if loss is not None:
            _LOSSES.append(loss)
        handle(self, context)

    return overheard


def _loss(loop: AbstractEventLoop, context: dict[str, Any]) -> Loss | None:
    if _is_handled(loop):
        return None
    message = str(context.get("message"))
    teller = context.get("task") or context.get("future")
    birth = births.of(teller)
    name = f"task {teller.get_name()!r}" if isinstance(teller, Task) else "a future"
    if "never retrieved" in message:
        error = context.get("exception")
        place = raised_at(error)
        stands = (f"raised at {place}",) if place else ()
        return Loss(birth, loop, "HF601", f"{in_words(error)} in {name}, read by nobody", stands)
    if "destroyed but it is pending" in message:
        return Loss(birth, loop, "HF101", f"{name}, collected while it was pending", ())
    return None


def _is_handled(loop: AbstractEventLoop) -> bool:
    """A program that handles what the loop is told has read it. anyio's test runner puts in a
    handler, too, but one that reads nothing."""
    handler = loop.get_exception_handler()
    return handler is not None and not (getattr(handler, "__module__", "") or "").startswith(
        "anyio."
    )
