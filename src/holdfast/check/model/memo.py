"""What was worked out once about a module, a class or a function, kept with it.

It lives as long as what it is about: nothing here keeps a tree alive after its file is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

__all__ = ["remembered"]


class _Subject(Protocol):
    memo: dict[Any, Any]


S = TypeVar("S", bound=_Subject)
T = TypeVar("T")


def remembered(work: Callable[[S], T]) -> Callable[[S], T]:
    """Ask once about each subject."""

    @wraps(work)
    def ask(subject: S) -> T:
        memo = subject.memo
        if work not in memo:
            memo[work] = work(subject)
        answer: T = memo[work]
        return answer

    return ask
