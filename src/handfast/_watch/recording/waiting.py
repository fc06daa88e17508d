"""Where a task waits, and for what, in words. Nothing of its local variables is read."""

from __future__ import annotations

from asyncio import Task
from collections.abc import Iterator
from types import FrameType
from typing import Any

from handfast._asyncio_internals import awaited_future, children_of
from handfast._await_stack import await_frames
from handfast._code_owner import code_owner, is_machinery
from handfast._watch.recording.shown_text import LineTexts, clean

# A chain of awaits may be as long as the recursion limit of the program; the innermost count.
_DEEPEST = 50
_FIRST = 1000


def coroutine_of(task: Task[Any]) -> Any:
    """What a task runs; None once it has ended: on 3.12.1 `get_coro` of a finished eager task
    crashes the interpreter."""
    return None if task.done() else task.get_coro()


def name_of_coroutine(task: Task[Any]) -> str:
    """The name of what a task runs."""
    coro = coroutine_of(task)
    try:
        name = coro.__qualname__
    except Exception:  # a class of the program's, which may raise anything
        name = None
    return clean(name if isinstance(name, str) else type(coro).__name__)


def waiting_at(task: Task[Any], lines: LineTexts) -> tuple[tuple[str, ...], str]:
    """The lines of the await stack, the innermost last, and what is awaited, in words."""
    try:
        return _waiting_at(task, lines)
    except Exception as error:  # a class of the program's, which may raise anything
        return (), f"what raises {clean(type(error).__name__)} when it is read"


def _waiting_at(task: Task[Any], lines: LineTexts) -> tuple[tuple[str, ...], str]:
    future = awaited_future(task)
    if future is None:  # it runs, or is about to
        return (), ""
    frames = list(_frames(coroutine_of(task)))
    shown = [f for f in frames if not is_machinery(f.f_code.co_filename, "runtime")] or frames
    stack = tuple(lines.of(frame.f_code, frame.f_lasti) for frame in shown[-_DEEPEST:])
    return stack, _words(future, frames)


def _frames(awaitable: Any) -> Iterator[FrameType]:
    for number, frame in enumerate(await_frames(awaitable)):
        if number == _FIRST:
            return
        yield frame


def _words(future: Any, frames: list[FrameType]) -> str:
    """The function of the standard library or of ours that the program awaits; or else the future."""
    awaited = ""
    for frame in reversed(frames):
        if code_owner(frame.f_code.co_filename) in ("program", "library"):
            break
        awaited = frame.f_code.co_qualname
    if awaited:
        return clean(awaited)
    if issubclass(type(future), Task):
        return f"task {clean(future.get_name())!r}"
    return clean(type(future).__name__.lstrip("_"))


def awaited_tasks(task: Task[Any]) -> tuple[int, ...]:
    """The ids of the tasks that a task awaits, by itself or with `gather`."""
    future = awaited_future(task)
    if issubclass(type(future), Task):
        return (id(future),)
    children = children_of(future)
    return tuple(id(each) for each in children if isinstance(each, Task) and not each.done())
