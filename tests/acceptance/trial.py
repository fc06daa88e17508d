"""Runs the situation of a scenario and checks promises.

A situation returns what was seen; a promise asserts on that. `holds` is for fixed programs. `breaks`
is for those of the reports: it passes only if the promise was seen broken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from handfast.catalogue import KINDS
from handfast.explore import Counterexample, explore

__all__ = ["Explored", "Once", "Promise", "Trial"]

S = TypeVar("S")
Promise = Callable[[Any], None]
"""Asserts something about what was seen."""

_SCHEDULES = 60
_FAILED = ("HF441", "HF443")


class Trial(Protocol):
    """A situation that promises can be checked on."""

    def holds(self, promise: Promise) -> None:
        """Pass if the promise was kept."""
        ...

    def breaks(self, promise: Promise) -> None:
        """Pass if the promise was seen broken."""
        ...


class Broken(AssertionError):
    """A promise was broken; any other error is a bug in the scenario."""


class Explored:
    """A situation on the explored loop. A promise has to hold under every schedule that is tried,
    and is broken if it does not under one of them.

    `shows` are the kinds by which the explorer itself sees it broken: a situation that never ends
    returns nothing to check.
    """

    def __init__(
        self,
        situation: Callable[[], Awaitable[Any]],
        *,
        shows: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        self._situation = situation
        self._shows = (*_FAILED, *shows)
        self._options = {"schedules": _SCHEDULES} | options

    def holds(self, promise: Promise) -> None:
        found = self._explored(promise)
        assert found is None, found.report()

    def breaks(self, promise: Promise) -> None:
        others = [kind.code for kind in KINDS if kind.code not in self._shows]
        found = self._explored(promise, ignore=others)
        assert found is not None, "no schedule that was tried breaks it"
        assert found.code not in _FAILED or isinstance(found.error, Broken), found.report()

    def _explored(self, promise: Promise, **more: Any) -> Counterexample | None:
        async def program() -> None:
            seen = await self._situation()
            try:
                promise(seen)
            except AssertionError as error:
                raise Broken(*error.args) from None

        return explore(program, **(self._options | more)).counterexample


class Once(Generic[S]):
    """A situation with real parts: it runs once, and each promise is checked on the same result."""

    def __init__(self, seen: S) -> None:
        self._seen = seen

    @classmethod
    def of(cls, situation: Awaitable[S]) -> Once[S]:
        """What was seen in a situation that takes place on a loop of its own."""

        async def main() -> S:
            return await situation

        return cls(asyncio.run(main()))

    def holds(self, promise: Promise) -> None:
        promise(self._seen)

    def breaks(self, promise: Promise) -> None:
        try:
            promise(self._seen)
        except AssertionError:
            return
        raise AssertionError(f"it was kept: {self._seen}")
