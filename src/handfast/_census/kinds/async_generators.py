"""Async generators that were started and neither exhausted nor closed.

A generator that a pending task iterates, or holds in a variable or an `async with`, ends with that
task: it is part of the task. Generators are referenced weakly, since one in a reference cycle is
gone with the next garbage collection, and a snapshot must not prevent that.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import weakref
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from types import AsyncGeneratorType, MethodType
from typing import Any, TypeAlias

from handfast import _await_stack as stacks
from handfast._asyncio_internals import async_generators_of, running_loop
from handfast._census import creation_log, event_loops
from handfast._census.creation import creation_in
from handfast._census.kind import Kind
from handfast._census.kinds.tasks import coroutine_of, pending
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch, call_before
from handfast._origin import Origin

Generator: TypeAlias = AsyncGenerator[Any, Any]


def open_generators(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each open generator, of one loop or of all."""
    tasks: Mapping[int, LiveObject] | None = None
    for each in event_loops.known(loop):
        for generator in async_generators_of(each):
            if _is_open(generator):
                if tasks is None:  # searches all tasks: only if it is needed
                    tasks = _by_generator(loop)
                yield _live_generator(generator, each, tasks.get(id(generator)))


def _live_generator(
    generator: Generator, loop: AbstractEventLoop, task: LiveObject | None
) -> LiveObject:
    creation = creation_log.creation_of(generator)
    name = getattr(generator, "__qualname__", type(generator).__name__)
    reference = weakref.ref(generator)
    # Not the task itself, whose frames reference the generator.
    task_key = task.key if task else None
    return LiveObject(
        check="generators",
        code="HF731",
        # With the creation: the id of a collected generator is used again.
        key=("generator", id(generator), creation),
        what=f"async generator {name}, open",
        ended=lambda: not _is_open(reference()),
        waiting_at=lambda: _line(reference()),
        creation=creation,
        loop=loop,
        target=reference,
        part_of=lambda: task_key,
        # The task does nothing but close it.
        ends_by_itself=task is not None and task.ends_by_itself,
    )


def _is_open(generator: Generator | None) -> bool:
    return getattr(generator, "ag_frame", None) is not None


def _line(generator: Generator | None) -> tuple[str, ...]:
    frame = getattr(generator, "ag_frame", None)
    return (str(Origin(frame.f_code, frame.f_lasti)),) if frame is not None else ()


def _not_checked(loop: AbstractEventLoop | None) -> Iterator[str]:
    return event_loops.not_listed("async generators", "_asyncgens", loop)


# --- the tasks that hold generators ------------------------------------------------------------


def _by_generator(loop: AbstractEventLoop | None) -> dict[int, LiveObject]:
    """The pending task that runs or holds each generator, by the generator's id."""
    found: dict[int, LiveObject] = {}
    for task in pending(loop):
        if task.library:  # it runs the program's code, and does not end with it
            continue
        coro = coroutine_of(task.target)
        # Not the task that takes the snapshot: it will not end with what it holds now.
        if not getattr(coro, "cr_running", False):
            for running in stacks.awaited(coro):
                _find_held(running, task, found)
    return found


def _find_held(running: Any, task: LiveObject, found: dict[int, LiveObject]) -> None:
    """The generators that a suspended coroutine or generator is, has in a variable, iterates, or
    has entered with `async with`; and what those hold in turn."""
    # Only the garbage collector shows what is on the value stack of a frame.
    queue = [running, *gc.get_referents(running)]
    managers: dict[int, Any] = {}  # two exit stacks may have entered each other
    while queue:
        value = queue.pop()
        if isinstance(value, AsyncGeneratorType):
            if id(value) not in found:
                found[id(value)] = task
                queue += gc.get_referents(value)
        else:
            # `async with` keeps the bound method `__aexit__`; since 3.14 the function and the
            # manager, each by itself.
            manager = value.__self__ if isinstance(value, MethodType) else value
            if type(manager).__module__ == contextlib.__name__ and id(manager) not in managers:
                managers[id(manager)] = manager
                queue += _entered(manager)


def _entered(manager: Any) -> list[Any]:
    """What one of contextlib's own managers has entered."""
    values = list(vars(manager).values())
    entered = [exits for stack in values if isinstance(stack, deque) for _, exits in stack]
    return [*values, *entered]


# --- patches -----------------------------------------------------------------------------------


def patches() -> Iterator[Patch]:
    """Record the first iteration of generators."""
    yield _FirstIteration(asyncio.BaseEventLoop, "_asyncgen_firstiter_hook", call_before(_record))


class _FirstIteration(Patch):
    """A loop that runs already has passed its method to the interpreter, and must do so again."""

    __slots__ = ()

    def install(self) -> None:
        super().install()
        _set_interpreter_hook()

    def uninstall(self) -> None:
        super().uninstall()
        _set_interpreter_hook()


def _set_interpreter_hook() -> None:
    loop: Any = running_loop()
    current = sys.get_asyncgen_hooks().firstiter
    if loop is not None and getattr(current, "__self__", None) is loop:
        method = getattr(loop, "_asyncgen_firstiter_hook", None)
        if method is not None:
            sys.set_asyncgen_hooks(firstiter=method)


def _record(loop: AbstractEventLoop, generator: Generator) -> None:
    creation = creation_in(sys._getframe(2), creation_log.current_owner())
    creation_log.store(generator, creation)


KIND = Kind("generators", ("HF731",), open_generators, patches, _not_checked, per_loop=True)
