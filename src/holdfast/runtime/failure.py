"""Operational errors and clean-up errors, told apart by the phase in which they were raised.

The phase is known at the moment of the raise, to whoever runs the clean-up, and is written
onto the exception there. Nothing here reads the text of an error, and nothing is dropped.
"""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

__all__ = [
    "CleanupErrors",
    "Failure",
    "annotate",
    "is_cleanup",
    "mark_cleanup",
    "resurface",
    "split",
]

_E = TypeVar("_E", bound=BaseException)

# Written into the error's own __dict__: an exception class may forbid setattr (a frozen
# dataclass), and one with a __getattr__ may claim to have any name.
_MARK = "__holdfast_cleanup__"
_SURFACED = "surfaced"  # it came out of a clean-up
_INNER = "inner"  # raised in a clean-up, and dealt with there
_COVERS = "__holdfast_covers__"

# What sets a clean-up off. Errors that came before it in the chain of contexts are older.
_TRIGGERS = (CancelledError, GeneratorExit)


class CleanupErrors(ExceptionGroup[Exception]):
    """A group whose members were all raised while something was being closed."""

    def derive(self, excs: Sequence[Any], /) -> Any:
        return CleanupErrors(self.message, excs)


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, in two parts. `operational` is what the program was about."""

    operational: tuple[BaseException, ...]
    cleanup: tuple[BaseException, ...]


# --- written down where it happens -----------------------------------------------------------


def mark_cleanup(error: _E, *, asked: bool = True, whole: bool = False) -> _E:
    """Note that `error` was raised in a clean-up phase.

    A group may bring together errors of both phases. A member belongs to the clean-up if it
    was raised while a cancellation or a close was being handled; or if the caller knows that
    all of it, back to the first error in its chain, is of this phase (`whole`). The same goes
    for a single error if it is not certain that the end had been `asked` for.
    """
    for node, _ in _tree(error, set()):
        older = _chain(node)
        trigger = next((i for i, e in enumerate(older) if isinstance(e, _TRIGGERS)), None)
        if whole or trigger is not None:
            for inner in older[:trigger]:
                inner.__dict__.setdefault(_MARK, _INNER)
            if not isinstance(node, BaseExceptionGroup):
                node.__dict__[_MARK] = _SURFACED
    # A group is of this phase only if all of it is.
    if (asked and not isinstance(error, BaseExceptionGroup)) or is_cleanup(error):
        error.__dict__[_MARK] = _SURFACED
    return error


def annotate(error: BaseException, words: str) -> None:
    """As `add_note`, also for a class that forbids to write to its exceptions."""
    error.__dict__.setdefault("__notes__", []).append(words)


def is_cleanup(error: BaseException) -> bool:
    """Whether `error` as a whole was raised in a clean-up phase."""
    return all(
        in_cleanup or isinstance(node, BaseExceptionGroup)
        for node, in_cleanup in _tree(error, set())
    )


def resurface(error: BaseException, *, covering: bool = False) -> NoReturn:
    """Raise an error that comes from another task, on top of what is being handled here.

    A plain `raise` would overwrite its `__context__`, and with it the errors that led to it.
    `covering`: what is being handled would have gone out otherwise, so `split` shall show it.
    """
    older = _chain(error)
    covered = sys.exception()
    if covering and covered is not None:
        error.__dict__[_COVERS] = True
    try:
        raise error
    finally:
        if older:
            _set_context(error, older[0])
            if covered is not None and not {id(error), *map(id, older)} & _ids(covered):
                _set_context(older[-1], covered)
        del error, older, covered  # they refer to this frame


def _set_context(error: BaseException, context: BaseException) -> None:
    BaseException.__setattr__(error, "__context__", context)  # past a class that forbids it


def _ids(error: BaseException) -> set[int]:
    return {id(error), *map(id, _chain(error))}


def _chain(error: BaseException) -> list[BaseException]:
    """The contexts of `error`, the nearest first. A chain may be tied into a ring by hand."""
    chain: list[BaseException] = []
    seen = {id(error)}
    context = error.__context__
    while context is not None and id(context) not in seen:
        seen.add(id(context))
        chain.append(context)
        context = context.__context__
    return chain


def _tree(root: BaseException, seen: set[tuple[int, bool]]) -> Iterator[tuple[BaseException, bool]]:
    """Every group and every single error, and whether it stands in a clean-up. No recursion:
    there is no limit to how deep groups may be nested, nor to how often one is shared."""
    todo = [(root, False)]
    while todo:
        error, in_cleanup = todo.pop()
        in_cleanup = in_cleanup or isinstance(error, CleanupErrors) or _MARK in error.__dict__
        if (id(error), in_cleanup) in seen:
            continue
        seen.add((id(error), in_cleanup))
        yield error, in_cleanup
        if isinstance(error, BaseExceptionGroup):
            todo += [(member, in_cleanup) for member in reversed(error.exceptions)]


# --- read by whoever deals with the failure --------------------------------------------------


def split(exception: BaseException) -> Failure:
    """Every single error inside `exception`, at any depth, sorted by its phase.

    An operational error that a failing clean-up has covered (it is then the `__context__` or
    `__cause__` of the clean-up error) comes to light again. So does one that was being handled
    when the clean-up began: Python does not say whether that would have been the end of it.

    >>> group = ExceptionGroup("run", [ValueError("work"), CleanupErrors("close", [OSError("disk")])])
    >>> split(group)
    Failure(operational=(ValueError('work'),), cleanup=(OSError('disk'),))
    """
    phases: dict[int, tuple[BaseException, bool]] = {}
    seen: set[tuple[int, bool]] = set()
    roots = [exception]
    for root in roots:  # it grows while we go: what a clean-up covers is a tree of its own
        nodes = list(_tree(root, seen))
        for error, in_cleanup in nodes:
            if not isinstance(error, BaseExceptionGroup):
                # Found in both phases, it is operational: that may not be hidden.
                _, before = phases.get(id(error), (error, True))
                phases[id(error)] = error, before and in_cleanup
        for error, in_cleanup in nodes:
            if in_cleanup or _COVERS in error.__dict__:
                roots += (e for e in _covered(error) if (id(e), True) not in seen)
    return Failure(
        tuple(error for error, in_cleanup in phases.values() if not in_cleanup),
        tuple(error for error, in_cleanup in phases.values() if in_cleanup),
    )


def _covered(error: BaseException) -> Iterator[BaseException]:
    """What came to nothing because `error` was raised on top of it."""
    seen = {id(error)}
    todo = [error.__cause__, error.__context__]
    while todo:
        older = todo.pop()
        if older is None or id(older) in seen:
            continue
        seen.add(id(older))
        if isinstance(older, _TRIGGERS) or older.__dict__.get(_MARK) == _INNER:
            todo += [older.__cause__, older.__context__]
        else:
            yield older
