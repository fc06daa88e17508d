"""Typed decorators for Behave's steps; and `promise`, which defines two steps with one function.

One step says that the program keeps a promise, the other that it was seen to break it. Both use the
same check, so the reported program fails in exactly what the fixed one does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Protocol, TypeVar

import behave

from examples.example import Example
from tests.acceptance.trial import Trial

__all__ = ["Context", "given", "part", "promise", "when"]

Step = TypeVar("Step", bound=Callable[..., None])
P = TypeVar("P", bound=Callable[..., None])


class Context(Protocol):
    """What the steps of a scenario pass to each other."""

    example: Example
    version: str
    trial: Trial


def part(context: Context, name: str) -> Any:
    """Return a name of the program, in the version of the scenario."""
    return getattr(context.example.module(context.version), name)


def given(words: str) -> Callable[[Step], Step]:
    """A step that says which program it is."""
    return _step(behave.given, words)


def when(words: str) -> Callable[[Step], Step]:
    """A step that says what happens."""
    return _step(behave.when, words)


def promise(words: str, *, otherwise: str) -> Callable[[P], P]:
    """Two steps: the promise is kept; or, in the words of `otherwise`, it was seen broken."""

    def register(check: P) -> P:
        @wraps(check)  # Behave then shows the line of the check
        def kept(context: Context, **measure: Any) -> None:
            context.trial.holds(partial(check, **measure))

        @wraps(check)
        def broken(context: Context, **measure: Any) -> None:
            context.trial.breaks(partial(check, **measure))

        _step(behave.then, words)(kept)
        _step(behave.then, otherwise)(broken)
        return check

    return register


def _step(register: Any, words: str) -> Callable[[Step], Step]:
    decorate: Callable[[Step], Step] = register(words)
    return decorate
