"""The register of births: where each thing was made, and for whom.

`hooks` write here while births are recorded; the checks read. A thing is kept weakly, so that
the register never keeps anything alive. The owner of what is born in a task, in a callback or in
a thread is the owner of whoever started that: it travels in a context variable.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from holdfast.census.birth import Birth, birth_here

__all__ = [
    "ASKED",
    "OWNER",
    "born",
    "handed_down",
    "note",
    "of",
    "owned_by",
    "owned_here_by",
    "owner_now",
    "register",
]

OWNER: ContextVar[object] = ContextVar("holdfast_owner", default=None)
"""Who owns what is born in this context; None: whoever owns the present phase."""

ASKED: ContextVar[Birth | None] = ContextVar("holdfast_asked", default=None)
"""Where another thread asked for what happens in this context."""

_NOBODY = object()
"""In a context: what is born here belongs to nobody, whatever the phase."""

_ATTRIBUTE = "_holdfast_birth"
# For what takes no attributes: timers, generators. By identity, since two timers may be equal.
_OTHERS: dict[int, tuple[weakref.ref[Any], Birth]] = {}
_phase: object = None
_recorded = False


@contextmanager
def owned_by(owner: object) -> Iterator[None]:
    """Within, what is born outside any task belongs to `owner`."""
    global _phase
    before = _phase, OWNER.get()
    _phase = owner
    # pytest-asyncio carries the variables of a fixture's context over into this one.
    OWNER.set(None)
    try:
        yield
    finally:
        _phase = before[0]
        OWNER.set(before[1])


@contextmanager
def owned_here_by(owner: object) -> Iterator[None]:
    """Within, what is born in this task belongs to `owner`, and what comes of that as well."""
    before = OWNER.set(owner)
    try:
        yield
    finally:
        OWNER.reset(before)


def owner_now() -> object:
    """Whoever owns what is born here and now; None: nobody."""
    owner = OWNER.get()
    if owner is None:
        return _phase
    return None if owner is _NOBODY else owner


def handed_down(owner: object) -> object:
    """What a context is given, so that `owner` owns what will be born in it, also in a phase that
    is another's by then."""
    return _NOBODY if owner is None else owner


def record(on: bool) -> None:
    """Births are recorded from now on, or no longer."""
    global _recorded
    _recorded = on


def are_recorded() -> bool:
    """Whether anybody asks for births now."""
    return _recorded


def born(depth: int = 1) -> Birth | None:
    """A birth where the caller was called from, `depth` frames out."""
    return birth_here(sys._getframe(depth + 1), owner_now(), ASKED.get())


def note(thing: Any, depth: int = 1) -> None:
    """Register `thing` as born where the caller was called from, `depth` frames out."""
    register(thing, born(depth + 1))


def register(thing: Any, birth: Birth | None) -> None:
    """Register `thing` with a birth that is known."""
    if birth is None:
        return
    try:
        # Past whatever a class of the program makes of new attributes.
        object.__setattr__(thing, _ATTRIBUTE, birth)
    except (AttributeError, TypeError):
        key = id(thing)
        # Bound early: at the end of the interpreter the module's names go before this does.
        forget = _OTHERS.pop
        _OTHERS[key] = (weakref.ref(thing, lambda _: forget(key, None) and None), birth)


def of(thing: Any) -> Birth | None:
    """The birth of `thing`, or None if nobody saw it."""
    birth = getattr(thing, _ATTRIBUTE, None)
    if birth is not None:
        return birth if isinstance(birth, Birth) else None
    entry = _OTHERS.get(id(thing))
    return entry[1] if entry is not None and entry[0]() is thing else None
