"""One call of a watched object: what was called, when, by which task, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# The response of an operation that has none: after everything.
NEVER = float("inf")


class _Anything:
    """A result that is not compared."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


ANYTHING = _Anything()


@dataclass(slots=True, eq=False)
class Operation:
    """A call with the times of its invocation and its response, as numbers that only order them.

    Without a response (`ended` is NEVER) it may have taken effect at any time since, or not at all.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    task: str
    began: int
    ended: float = NEVER
    result: Any = None
    error: BaseException | None = None

    @property
    def known(self) -> bool:
        """Whether its result, or the error in its place, is an answer that the model has to give."""
        return self.ended != NEVER
