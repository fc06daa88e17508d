"""Which object was created where, and for whom.

The patches write here while `recording` is on; the kinds read. Objects are referenced weakly. The
owner of what a task, a callback or a thread creates is the owner of the code that started it: it
is passed on in a context variable.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any

from handfast._census.creation import Creation, creation_in

OWNER: ContextVar[object] = ContextVar("handfast_owner", default=None)
"""The owner of what is created in this context; None: the owner of the present phase."""

REQUESTED: ContextVar[Creation | None] = ContextVar("handfast_requested", default=None)
"""Where another thread requested what happens in this context."""

# In a context: what is created here has no owner, whatever the phase.
_NO_OWNER = object()

_ATTRIBUTE = "_handfast_creation"
# For objects that take no attributes: timers, generators. By identity, since two timers may be
# equal.
_WITHOUT_ATTRIBUTES: dict[int, tuple[weakref.ref[Any], Creation]] = {}
_phase: object = None
_recording = False


@contextmanager
def owned_by(owner: object) -> Iterator[None]:
    """Within, what is created outside any task belongs to `owner`."""
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
    """Within, what this task creates belongs to `owner`, and what that creates as well."""
    before = OWNER.set(owner)
    try:
        yield
    finally:
        OWNER.reset(before)


def current_owner() -> object:
    """The owner of what is created here and now; None if there is none."""
    owner = OWNER.get()
    if owner is None:
        return _phase
    return None if owner is _NO_OWNER else owner


def inherited(owner: object) -> object:
    """The value of `OWNER` for a context whose objects belong to `owner`, in any later phase."""
    return _NO_OWNER if owner is None else owner


def set_owner_in(context: Context, owner: object) -> None:
    """Make `owner` the owner of what is created in `context`."""
    try:
        context.run(OWNER.set, inherited(owner))
    except RuntimeError:  # it is entered already, and its owner was set by then
        pass


def set_recording(on: bool) -> None:
    """Switch recording on or off."""
    global _recording
    _recording = on


def is_recording() -> bool:
    """Whether creations are recorded now."""
    return _recording


def created_here(depth: int = 1) -> Creation | None:
    """A creation at the caller's caller, `depth` frames further out."""
    return creation_in(sys._getframe(depth + 1), current_owner(), REQUESTED.get())


def record(created: Any, depth: int = 1) -> None:
    """Record that `created` was created at the caller's caller, `depth` frames further out."""
    store(created, created_here(depth + 1))


def store(created: Any, creation: Creation | None) -> None:
    """Record a known creation of `created`."""
    if creation is None:
        return
    try:
        # Not setattr: a class of the program may override it.
        object.__setattr__(created, _ATTRIBUTE, creation)
    except (AttributeError, TypeError):
        key = id(created)
        # Bound early: when the interpreter ends, module globals are cleared before this runs.
        forget = _WITHOUT_ATTRIBUTES.pop
        reference = weakref.ref(created, lambda _: forget(key, None) and None)
        _WITHOUT_ATTRIBUTES[key] = (reference, creation)


def creation_of(created: Any) -> Creation | None:
    """The recorded creation of an object, or None."""
    creation = getattr(created, _ATTRIBUTE, None)
    if creation is not None:
        return creation if isinstance(creation, Creation) else None
    entry = _WITHOUT_ATTRIBUTES.get(id(created))
    return entry[1] if entry is not None and entry[0]() is created else None
