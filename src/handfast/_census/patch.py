"""A patch: one attribute of a class or module, replaced for a while by a wrapper of ours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeAlias

Wrap: TypeAlias = Callable[[Any], Any]
"""Makes the replacement of a function from the original."""

_MISSING = object()


class Patch:
    """Replaces `where.name` by `wrap(original)` while it is installed.

    The original is None if there is none: a class need not have a `__del__`.
    """

    __slots__ = ("_name", "_original", "_wrap", "_wrapper", "where")

    def __init__(self, where: Any, name: str, wrap: Wrap) -> None:
        self.where = where
        self._name = name
        self._wrap = wrap
        self._original: Any = _MISSING
        self._wrapper: Any = None

    def install(self) -> None:
        """Replace the attribute."""
        # Not getattr: an inherited attribute is restored by deleting ours.
        self._original = vars(self.where).get(self._name, _MISSING)
        self._wrapper = self._wrap(getattr(self.where, self._name, None))
        setattr(self.where, self._name, self._wrapper)

    def uninstall(self) -> None:
        """Restore the original, unless another tool has patched over ours."""
        if vars(self.where).get(self._name) is not self._wrapper:
            return
        if self._original is _MISSING:
            delattr(self.where, self._name)
        else:
            setattr(self.where, self._name, self._original)


def uvloop_patches(*attributes: tuple[str, Wrap]) -> Iterator[Patch]:
    """Patches of uvloop's loop, if it is imported: it does not derive from asyncio's."""
    uvloop = sys.modules.get("uvloop")
    if uvloop is not None:
        for name, wrap in attributes:
            yield Patch(uvloop.Loop, name, wrap)


def call_before(action: Callable[..., object]) -> Wrap:
    """Call `action` with the same arguments before each call of a method."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def wrapper(*args: Any, **options: Any) -> Any:
            action(*args, **options)
            return original(*args, **options)

        return wrapper

    return wrap


def call_after(action: Callable[..., object]) -> Wrap:
    """Call `action` with the same arguments after each call of a method that has not raised."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def wrapper(*args: Any, **options: Any) -> Any:
            result = original(*args, **options)
            action(*args, **options)
            return result

        return wrapper

    return wrap
