"""The async generators that were begun and neither run to their end nor closed.

One that a pending task iterates, or holds in a variable or an `async with`, goes away with that
task and is part of it. A generator is held weakly: one in a reference cycle is on its way out,
and whoever asks the collector shall not find it kept by a census.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import weakref
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Mapping
from types import AsyncGeneratorType, MethodType
from typing import Any, TypeAlias

from holdfast.census import births, loops
from holdfast.census.birth import birth_here
from holdfast.census.hooks import Hook
from holdfast.census.tasks import TaskAlive, all_alive, coroutine_of, members_of
from holdfast.census.thing import Thing
from holdfast.origin import Origin
from holdfast.runtime import stacks

__all__ = ["GeneratorOpen", "all_open", "blind_spots", "hooks"]

Generator: TypeAlias = AsyncGenerator[Any, Any]


class GeneratorOpen(Thing):
    """An async generator that is suspended somewhere."""

    __slots__ = ("_id", "_name", "_ref", "_task_key", "_task_passes")

    check = "generators"

    def __init__(
        self, generator: Generator, loop: AbstractEventLoop, task: TaskAlive | None
    ) -> None:
        super().__init__(births.of(generator), loop)
        self._ref = weakref.ref(generator)
        self._id = id(generator)
        self._name = getattr(generator, "__qualname__", type(generator).__name__)
        # Not the task itself, whose frames hold the generator.
        self._task_key = task.key if task else None
        self._task_passes = task is not None and task.passing

    @property
    def generator(self) -> Generator | None:
        """The generator, if it still exists."""
        return self._ref()

    @property
    def key(self) -> Hashable:
        # With the birth: what is held weakly may go, and another come with the same id.
        return ("generator", self._id, self.birth)

    @property
    def code(self) -> str:
        return "HF731"

    @property
    def what(self) -> str:
        return f"async generator {self._name}, {'over' if self.over() else 'open'}"

    def stands(self) -> tuple[str, ...]:
        frame = getattr(self._ref(), "ag_frame", None)
        return (str(Origin(frame.f_code, frame.f_lasti)),) if frame is not None else ()

    def over(self) -> bool:
        return not _is_open(self._ref())

    @property
    def part_of(self) -> Hashable | None:
        """The pending task that iterates or holds it."""
        return self._task_key

    @property
    def passing(self) -> bool:
        """Whether a task does nothing but close it. The loop itself, when it closes one, has
        struck it off its list before."""
        return self._task_passes


def all_open(loop: AbstractEventLoop | None = None) -> Iterator[GeneratorOpen]:
    """Each open generator, of one loop or of all."""
    tasks: Mapping[int, TaskAlive] | None = None
    for each in loops.known(loop):
        for generator in members_of(getattr(each, "_asyncgens", ())):
            if _is_open(generator):
                if tasks is None:  # a walk through all tasks: only if there is need
                    tasks = _by_generator(loop)
                yield GeneratorOpen(generator, each, tasks.get(id(generator)))


def blind_spots(loop: AbstractEventLoop | None = None) -> Iterator[str]:
    """Loops that do not show their generators."""
    return loops.unseen("async generators", "_asyncgens", loop)


def _is_open(generator: Generator | None) -> bool:
    return getattr(generator, "ag_frame", None) is not None


# --- the tasks that hold generators ------------------------------------------------------------


def _by_generator(loop: AbstractEventLoop | None) -> dict[int, TaskAlive]:
    """The pending task of each generator that one runs or holds, by the generator's id."""
    found: dict[int, TaskAlive] = {}
    for alive in all_alive(loop):
        coro = coroutine_of(alive.task)
        # Whoever takes the census is still to leave what it holds.
        if not getattr(coro, "cr_running", False):
            for running in stacks.awaited(coro):
                _find_held(running, alive, found)
    return found


def _find_held(running: Any, alive: TaskAlive, found: dict[int, TaskAlive]) -> None:
    """The generators that a suspended coroutine or generator is, has in a variable, iterates, or
    has entered with `async with`; and what those hold in turn."""
    # What is on the stack of a frame only the collector tells.
    ways = [running, *gc.get_referents(running)]
    while ways:
        value = ways.pop()
        if isinstance(value, AsyncGeneratorType):
            if id(value) not in found:
                found[id(value)] = alive
                ways += gc.get_referents(value)
        elif isinstance(value, MethodType):  # `async with` keeps the method `__aexit__`
            ways += _inside(value.__self__)


def _inside(manager: Any) -> list[Any]:
    """What contextlib's own managers have entered."""
    if type(manager).__module__ != contextlib.__name__:
        return []
    values = list(vars(manager).values())
    entered = [exits for stack in values if isinstance(stack, deque) for _, exits in stack]
    return [*values, *entered]


# --- birth -------------------------------------------------------------------------------------


def hooks() -> Iterator[Hook]:
    """Where generators are begun."""
    yield _FirstIteration(
        asyncio.BaseEventLoop, "_asyncgen_firstiter_hook", _around_first_iteration
    )


class _FirstIteration(Hook):
    """A loop that runs already has given the interpreter its method: it must do so again."""

    __slots__ = ()

    def put_in(self) -> None:
        super().put_in()
        _hand_over_again()

    def take_out(self) -> None:
        super().take_out()
        _hand_over_again()


def _hand_over_again() -> None:
    loop: Any = asyncio._get_running_loop()
    given = sys.get_asyncgen_hooks().firstiter
    if loop is not None and getattr(given, "__self__", None) is loop:
        ours = getattr(loop, "_asyncgen_firstiter_hook", None)
        if ours is not None:
            sys.set_asyncgen_hooks(firstiter=ours)


def _around_first_iteration(first: Callable[..., None]) -> Callable[..., None]:
    def noted(self: AbstractEventLoop, generator: Generator) -> None:
        births.register(generator, birth_here(sys._getframe(1), births.owner_now()))
        first(self, generator)

    return noted
