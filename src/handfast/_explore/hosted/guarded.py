"""A coroutine around that of a task, for the runs in which the explorer cancels one.

It drives the coroutine as the task would, and sees what leaves it. If it is the injected cancel of a
task that the test does not expect to be cancelled, the task ends as if it had nothing to return: so
the rest of the test goes on, and shows what the cancelled call has done.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any


def _nothing(_: Any) -> None:
    """Nothing to do after a step."""


class GuardedCoroutine(Coroutine[Any, Any, Any]):
    """`ends` gets what is raised and returns whether to drop it; `stepped` what is awaited next."""

    def __init__(
        self,
        coroutine: Any,
        ends: Callable[[BaseException], bool],
        stepped: Callable[[Any], None] = _nothing,
    ) -> None:
        self._coroutine = coroutine
        self._ends = ends
        self._stepped = stepped
        self.__name__ = getattr(coroutine, "__name__", "coroutine")
        self.__qualname__ = getattr(coroutine, "__qualname__", "coroutine")

    def send(self, value: Any) -> Any:
        return self._step(self._coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._coroutine.throw, *error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Any:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        # cr_frame, cr_await and the like: await stacks look through this object.
        return getattr(self._coroutine, name)

    def _step(self, step: Callable[..., Any], *args: Any) -> Any:
        try:
            awaited = step(*args)
        except StopIteration:
            raise
        except BaseException as error:
            if self._ends(error):
                raise StopIteration from None
            raise
        self._stepped(awaited)
        return awaited
