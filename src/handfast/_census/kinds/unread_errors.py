"""Task errors that were never retrieved, and tasks that were collected while they were pending.

A task that still exists is inspected. One that is gone has called the loop's exception handler,
which is patched. Only text is kept of it: an exception would keep its frames alive.
"""

from __future__ import annotations

import asyncio
import weakref
from asyncio import AbstractEventLoop, Task
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from handfast._asyncio_internals import error_of, has_unread_error
from handfast._census import creation_log
from handfast._census.event_loops import every_task
from handfast._census.kind import Kind
from handfast._census.kinds.tasks import creation_of_task, owner_in_context
from handfast._census.known_libraries import library_that_keeps
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch, call_before, uvloop_patches
from handfast._code_owner import is_program
from handfast._origin import Origin

# What was reported to exception handlers, each with a weak reference to its loop.
_REPORTED: list[tuple[weakref.ref[AbstractEventLoop], LiveObject]] = []


def unread_errors(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each error that was not retrieved, of one loop or of all."""
    for task in every_task(loop):
        if _is_unread(task):
            yield _live_error(task)
    yield from [live for on, live in _REPORTED if loop is None or on() is loop]


def _live_error(task: Task[Any]) -> LiveObject:
    return LiveObject(
        check="errors",
        code="HF601",
        key=("error", id(task)),
        what=f"{error_text(error_of(task))} in task {task.get_name()!r}, never retrieved",
        ended=lambda: not _is_unread(task),
        waiting_at=lambda: _raised(error_of(task)),
        creation=creation_of_task(task),
        owner=owner_in_context(task),
        loop=task.get_loop(),
        target=task,
    )


def _is_unread(task: Task[Any]) -> bool:
    # Not `task.exception()`: that would count as retrieving the error.
    return task.done() and has_unread_error(task) and not _leaves_the_loop(error_of(task))


def _leaves_the_loop(error: BaseException | None) -> bool:
    """Whether a task raises it through `run_forever` as well, so that it is not lost."""
    return isinstance(error, SystemExit | KeyboardInterrupt)


# --- error text --------------------------------------------------------------------------------


def error_text(error: BaseException | None) -> str:
    """An error in one line."""
    if error is None:
        return "an error"
    try:
        text = str(error).partition("\n")[0]
    except Exception:  # its `__str__` fails
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def raised_at(error: BaseException | None) -> Origin | None:
    """The innermost line of the program, or else the innermost of all."""
    own = innermost = None
    traceback: TracebackType | None = error.__traceback__ if error else None
    while traceback is not None:
        innermost = Origin(traceback.tb_frame.f_code, traceback.tb_lasti)
        if is_program(innermost.filename):
            own = innermost
        traceback = traceback.tb_next
    return own or innermost


def _raised(error: BaseException | None) -> tuple[str, ...]:
    line = raised_at(error)
    return (f"raised at {line}",) if line else ()


# --- patches -----------------------------------------------------------------------------------


def patches() -> Iterator[Patch]:
    """Record what event loops report to their exception handlers."""
    yield Patch(asyncio.BaseEventLoop, "call_exception_handler", call_before(_record))
    yield from uvloop_patches(("call_exception_handler", call_before(_record)))


def _record(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    live = None if _has_own_handler(loop) else _reported(context)
    if live is not None:
        _REPORTED.append((weakref.ref(loop), live))


def _reported(context: dict[str, Any]) -> LiveObject | None:
    message = str(context.get("message"))
    future = context.get("task") or context.get("future")
    name = f"task {future.get_name()!r}" if isinstance(future, Task) else "a future"
    raised: tuple[str, ...] = ()
    error = context.get("exception")
    if "never retrieved" in message and not _leaves_the_loop(error):
        code, what, raised = (
            "HF601",
            f"{error_text(error)} in {name}, never retrieved",
            _raised(error),
        )
    elif "destroyed but it is pending" in message:
        code, what = "HF101", f"{name}, collected while it was pending"
    else:
        return None
    return LiveObject(
        check="errors",
        code=code,
        key=("reported", object()),
        what=what,
        ended=lambda: False,
        waiting_at=lambda: raised,
        creation=creation_log.creation_of(future),
    )


def _has_own_handler(loop: AbstractEventLoop) -> bool:
    """Whether the program handles what the loop reports, and so has read it."""
    handler = loop.get_exception_handler()
    module = getattr(handler, "__module__", "") or ""
    return handler is not None and not library_that_keeps("exception handler", module)


KIND = Kind("errors", ("HF601", "HF101"), unread_errors, patches, clear=_REPORTED.clear)
