"""How steps are told to Behave, with types; and a promise, which is two steps in one.

What a program promises and that it was seen to break it are said in two sentences, and checked by
one function: so the program as reported fails in the very thing in which the right one does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Protocol, TypeVar

import behave

from holdfast.casebook.case import Case
from tests.acceptance.trial import Trial

__all__ = ["Context", "given", "part", "promise", "when"]

Step = TypeVar("Step", bound=Callable[..., None])
P = TypeVar("P", bound=Callable[..., None])


class Context(Protocol):
    """What the steps of a scenario hand on to each other."""

    case: Case
    version: str
    trial: Trial


def part(context: Context, name: str) -> Any:
    """Something of the program in question, in the version in question."""
    return getattr(context.case.module(context.version), name)


def given(words: str) -> Callable[[Step], Step]:
    """A step that says which program it is."""
    return _step(behave.given, words)


def when(words: str) -> Callable[[Step], Step]:
    """A step that says what happens."""
    return _step(behave.when, words)


def promise(words: str, *, otherwise: str) -> Callable[[P], P]:
    """Two steps: the promise is kept; or, in the words of `otherwise`, it was seen broken."""

    def register(check: P) -> P:
        @wraps(check)  # Behave then says where the promise is, and not that it is here
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
