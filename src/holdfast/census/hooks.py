"""A hook: one function of the standard library, or of a library, with ours around it for a while.

Each check says in its own file which hooks it needs; `recording` puts them in and takes them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Hook"]

_MISSING = object()


class Hook:
    """`around(original)` stands in the place of `where.name` while it is in.

    The original is None if there is none: a class need not have a `__del__`.
    """

    __slots__ = ("_around", "_name", "_ours", "_theirs", "where")

    def __init__(self, where: Any, name: str, around: Callable[[Any], Any]) -> None:
        self.where = where
        self._name = name
        self._around = around
        self._theirs: Any = _MISSING
        self._ours: Any = None

    def put_in(self) -> None:
        """Stand in the way."""
        # Not getattr: what a class inherits is put back by taking ours away.
        self._theirs = vars(self.where).get(self._name, _MISSING)
        self._ours = self._around(getattr(self.where, self._name, None))
        setattr(self.where, self._name, self._ours)

    def take_out(self) -> None:
        """Put back what was there, unless somebody has put something over ours."""
        if vars(self.where).get(self._name) is not self._ours:
            return
        if self._theirs is _MISSING:
            delattr(self.where, self._name)
        else:
            setattr(self.where, self._name, self._theirs)
