"""Distinguishes operational errors from clean-up errors, by the phase that raised them.

The code that runs a clean-up knows the phase when the error is raised, and notes it then. The
text of an error is never read, and no error is dropped.

One exception object may reach many tasks (`StreamReader.set_exception`): in one it ends the work,
in another it is raised by a clean-up. So a phase is noted for an error and a task. A report sorts
the errors by the task that ended with them; for an error that travels alone `split_errors` reads
the notes, and one task that failed with it in its work is enough to make it operational.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from weakref import WeakSet, ref

_E = TypeVar("_E", bound=BaseException)

# These start a clean-up. Errors before them in the chain of contexts are older than it.
_TRIGGERS = (CancelledError, GeneratorExit)


class CleanupErrors(ExceptionGroup[Exception]):
    """A group of errors that were all raised while something was being closed."""

    def derive(self, excs: Sequence[Any], /) -> Any:
        return CleanupErrors(self.message, excs)


@dataclass(frozen=True, slots=True)
class Failure:
    """The errors of an exception in two parts: those of the work, and those of the clean-up."""

    operational: tuple[BaseException, ...]
    cleanup: tuple[BaseException, ...]


# --- noting, where the error is raised -------------------------------------------------------


class _Notes:
    """What is known of one exception object."""

    __slots__ = (
        "cleanup_of",
        "covering",
        "inner",
        "lines",
        "operational",
        "owner",
        "reported_to",
        "surfaced",
    )

    def __init__(self, owner: BaseException | None = None, phase: str = "") -> None:
        # `copy.copy(error)` has the same attributes, and is another error.
        self.owner = id(owner)
        self.surfaced = "surfaced" in phase  # raised by a clean-up
        self.inner = "inner" in phase  # raised and handled inside a clean-up
        # Without it the error that it covers would have been raised.
        self.covering = "covering" in phase
        # The tasks whose clean-up has raised it; and whether the work of any other has.
        self.cleanup_of: WeakSet[asyncio.Task[Any]] = WeakSet()
        self.operational = "operational" in phase
        # For bounded output: how many lines were added, and the loop that has got it.
        self.lines = 0
        self.reported_to: ref[asyncio.AbstractEventLoop] | None = None

    @property
    def phase(self) -> str:
        flags = ("surfaced", "inner", "covering", "operational")
        return " ".join(flag for flag in flags if getattr(self, flag))

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors are copied and pickled with their attributes. The tasks stay behind, and what is
        left is plain text: the process that unpickles the error may not have handfast."""
        return str, (self.phase,)

    @property
    def in_cleanup(self) -> bool:
        return (self.surfaced or self.inner) and not self.operational


_KEY = "__handfast_notes__"

# Bounds of what is written about one exception object.
_MAX_LINES = 8
_MORE = "... and in {} more tasks"
_MAX_ENTRIES = 64
_MAX_TEXT = 1_000

_NONE = _Notes()

# The error's own attributes. Its class may forbid setattr (a frozen dataclass), have a value for
# any name (`__getattr__`), or a `__dict__` of its own.
_attributes = BaseException.__dict__["__dict__"].__get__


def _notes(error: BaseException) -> _Notes:
    """The notes on `error`, to read."""
    return _own_notes(error) if _KEY in _attributes(error) else _NONE


def _own_notes(error: BaseException) -> _Notes:
    """The notes on `error`, to write."""
    attributes = _attributes(error)
    notes = attributes.get(_KEY)
    if not isinstance(notes, _Notes):
        notes = attributes[_KEY] = _Notes(error, notes if isinstance(notes, str) else "")
    elif notes.owner != id(error):
        notes = attributes[_KEY] = _Notes(error, notes.phase)
    return notes


def mark_cleanup(
    error: _E,
    *,
    requested: bool = True,
    whole: bool = False,
    task: asyncio.Task[Any] | None = None,
) -> _E:
    """Note that `error` was raised in a clean-up phase, of `task` or of the running task.

    A group may contain errors of both phases. A member belongs to the clean-up if it was raised
    while a cancellation or a close was being handled; or if the caller knows that all of it,
    back to the first error in its chain, is of this phase (`whole`). The same rule holds for a
    single error if it is not certain that the end was `requested`.
    """
    task = task or _current_task()
    for node, _ in _tree(error, set()):
        older = _chain(node)
        trigger = next((i for i, e in enumerate(older) if isinstance(e, _TRIGGERS)), None)
        if whole or trigger is not None:
            for inner in older[:trigger]:
                _own_notes(inner).inner = True
            if not isinstance(node, BaseExceptionGroup):
                _surface(node, task)
    # A group belongs to this phase only if all of its members do.
    if (requested and not isinstance(error, BaseExceptionGroup)) or is_cleanup(error, task):
        _surface(error, task)
    return error


def _surface(error: BaseException, task: asyncio.Task[Any] | None) -> None:
    notes = _own_notes(error)
    notes.surfaced = True
    if task is not None:
        notes.cleanup_of.add(task)


def mark_operational(error: BaseException) -> None:
    """Note that the running task fails with `error` in its work.

    A clean-up of another task may raise the same exception object, before or after that.
    """
    task = _current_task()
    for node, in_cleanup in _tree(error, set(), task):
        if not in_cleanup:
            _own_notes(node).operational = True


def is_cleanup(error: BaseException, task: asyncio.Task[Any] | None = None) -> bool:
    """Whether `error` as a whole was raised in a clean-up phase; of `task`, if it is given."""
    return all(
        in_cleanup or isinstance(node, BaseExceptionGroup)
        for node, in_cleanup in _tree(error, set(), task)
    )


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


def annotate(error: BaseException, note: str) -> None:
    """Do what `add_note` does, also for an exception class that forbids or replaces it.

    One exception object may end any number of tasks: from some number on they are only counted.
    """
    lines = _attributes(error).setdefault("__notes__", [])
    if not isinstance(lines, list):  # a program may have set anything
        return
    notes = _own_notes(error)
    notes.lines += 1
    if notes.lines > _MAX_LINES:
        count = _MORE.format(notes.lines - _MAX_LINES - 1)
        if count in lines:
            lines.remove(count)
        note = _MORE.format(notes.lines - _MAX_LINES)
        _shorten_traceback(error)
    lines.append(note)


def _shorten_traceback(error: BaseException) -> None:
    """Keep the newest entries: each task that raises an exception object adds its own to it."""
    entry = error.__traceback__
    for _ in range(_MAX_ENTRIES - 1):
        entry = entry and entry.tb_next
    if entry is not None:
        entry.tb_next = None


def first_report(error: BaseException, loop: asyncio.AbstractEventLoop) -> bool:
    """Whether `error` is reported to this loop for the first time."""
    notes = _own_notes(error)
    before, notes.reported_to = notes.reported_to, ref(loop)
    return before is None or before() is not loop


def show_error(error: BaseException) -> str:
    """`repr(error)`, of bounded length, also for a class whose repr() fails."""
    try:
        text = repr(error)
    except Exception as broken:
        text = f"<{type(error).__qualname__}; its repr() raised {type(broken).__qualname__}>"
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def resurface(error: BaseException, *, covering: bool = False) -> NoReturn:
    """Raise an error that comes from another task, while this task may handle one of its own.

    A plain `raise` would overwrite its `__context__`, and with it the errors that led to it.
    `covering`: without it the error that is being handled would be raised, so `split_errors` shows both.
    """
    older = _chain(error)
    covered = sys.exception()
    if covering and covered is not None:
        _own_notes(error).covering = True
    task = _current_task()
    for node, _ in _tree(error, set()):
        if _notes(node).in_cleanup:
            _surface(node, task)
    try:
        raise error
    finally:
        if older:
            _set_context(error, older[0])
            if covered is not None:
                append_context(error, covered)
        del error, older, covered  # they refer to this frame


def raise_fatal(fatal: BaseException, others: Sequence[BaseException]) -> NoReturn:
    """Raise a KeyboardInterrupt or SystemExit as it is, with the `others` as its context."""
    try:
        if others:
            group = BaseExceptionGroup(f"errors before {type(fatal).__name__}", others)
            if fatal.__context__ is not None:
                _set_context(group, fatal.__context__)
            _set_context(fatal, group)
            for error in (fatal, group):
                _own_notes(error).covering = True
        resurface(fatal)
    finally:
        del fatal, others  # they refer to this frame


def _set_context(error: BaseException, context: BaseException) -> None:
    BaseException.__setattr__(error, "__context__", context)  # the class may forbid setattr


def append_context(error: BaseException, older: BaseException) -> None:
    """Make `older` the last of the contexts of `error`, unless it is there or has it as its own."""
    chain = [error, *_chain(error)]
    if not set(map(id, chain)) & _ids(older):
        _set_context(chain[-1], older)


def _ids(error: BaseException) -> set[int]:
    return {id(error), *map(id, _chain(error))}


def _chain(error: BaseException) -> list[BaseException]:
    """The contexts of `error`, the nearest first. A program may make a cycle of them."""
    chain: list[BaseException] = []
    seen = {id(error)}
    context = error.__context__
    while context is not None and id(context) not in seen:
        seen.add(id(context))
        chain.append(context)
        context = context.__context__
    return chain


def _tree(
    root: BaseException,
    seen: set[tuple[int, bool]],
    task: asyncio.Task[Any] | None = None,
) -> Iterator[tuple[BaseException, bool]]:
    """Every group and every single error, and whether it belongs to a clean-up: of `task`, if it
    is given. No recursion: groups may be nested to any depth, and one group may be in several."""
    todo = [(root, False)]
    while todo:
        error, in_cleanup = todo.pop()
        notes = _notes(error)
        noted = notes.in_cleanup if task is None else task in notes.cleanup_of
        in_cleanup = in_cleanup or noted or isinstance(error, CleanupErrors)
        if (id(error), in_cleanup) in seen:
            continue
        seen.add((id(error), in_cleanup))
        yield error, in_cleanup
        if isinstance(error, BaseExceptionGroup):
            todo += [(member, in_cleanup) for member in reversed(error.exceptions)]


# --- reading, where the error is handled -----------------------------------------------------


def split_errors(exception: BaseException) -> Failure:
    """Every single error inside `exception`, at any depth, sorted by its phase.

    An operational error that a failing clean-up has replaced (it is then the `__context__` or
    `__cause__` of the clean-up error) is included. So is one that was being handled when the
    clean-up began: Python does not record whether the handler would have raised it again.

    >>> from handfast.errors import CleanupErrors
    >>> closing = CleanupErrors("close", [OSError("disk")])
    >>> group = ExceptionGroup("run", [ValueError("work"), closing])
    >>> split_errors(group)
    Failure(operational=(ValueError('work'),), cleanup=(OSError('disk'),))
    """
    phases: dict[int, tuple[BaseException, bool]] = {}
    seen: set[tuple[int, bool]] = set()
    roots = [exception]
    for root in roots:  # grows during the loop: an error that a clean-up covers is a new root
        nodes = list(_tree(root, seen))
        for error, in_cleanup in nodes:
            if not isinstance(error, BaseExceptionGroup):
                # An error of both phases counts as operational: those must not be hidden.
                _, before = phases.get(id(error), (error, True))
                phases[id(error)] = error, before and in_cleanup
        for error, in_cleanup in nodes:
            if in_cleanup or _notes(error).covering:
                roots += (e for e in _covered(error) if (id(e), True) not in seen)
    return Failure(
        tuple(error for error, in_cleanup in phases.values() if not in_cleanup),
        tuple(error for error, in_cleanup in phases.values() if in_cleanup),
    )


def _covered(error: BaseException) -> Iterator[BaseException]:
    """The errors that were not raised because `error` was raised while they were handled."""
    seen = {id(error)}
    todo = [error.__cause__, error.__context__]
    while todo:
        older = todo.pop()
        if older is None or id(older) in seen:
            continue
        seen.add(id(older))
        if isinstance(older, _TRIGGERS) or _is_inner(older):
            todo += [older.__cause__, older.__context__]
        else:
            yield older


def _is_inner(error: BaseException) -> bool:
    notes = _notes(error)
    return notes.inner and not notes.surfaced
