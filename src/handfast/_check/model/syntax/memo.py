"""Cache an answer with the module, class or function that it is about.

The cache lives as long as its subject, so nothing here keeps a tree alive after its file is checked.
`functools.cache` would: it holds its arguments until the process ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar


class _Subject(Protocol):
    memo: dict[Any, Any]


S = TypeVar("S", bound=_Subject)
P = ParamSpec("P")
T = TypeVar("T")


def remembered(work: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Compute a function once for each subject and further positional arguments."""

    @wraps(work)
    def look_up(subject: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        memo = subject.memo
        key = (work, *args)
        if key not in memo:
            memo[key] = work(subject, *args, **kwargs)
        answer: T = memo[key]
        return answer

    return look_up
