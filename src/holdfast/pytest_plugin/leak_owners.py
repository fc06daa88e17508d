"""Whose is what is born in a test run: the test's, or that of a fixture of a wider scope.

What a fixture of function scope makes is the test's. A wider one outlives the test, and what it
makes is judged when it has been torn down.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest

from holdfast.leaks.finding import MADE_FOR

__all__ = ["FixtureOwner", "Owners", "TestOwner"]


class TestOwner:
    """A test, from its set-up to the end of its teardown."""

    __test__ = False  # whatever its name says to pytest

    def __init__(self, item: pytest.Item) -> None:
        self.nodeid = item.nodeid

    def __str__(self) -> str:
        return self.nodeid


class FixtureOwner:
    """A fixture of class scope or wider, from its set-up to the end of its teardown."""

    def __init__(self, name: str, scope: str, nodeid: str) -> None:
        self.name = name
        self.scope = scope
        self.nodeid = nodeid
        """The test that it was made for."""
        self._teardown = ExitStack()

    def leaving(self, within: AbstractContextManager[None]) -> None:
        """Its teardown begins: `within` lasts until it has ended."""
        self._teardown.enter_context(within)

    def left(self) -> None:
        """Its teardown has ended."""
        self._teardown.close()

    def __str__(self) -> str:
        return f"fixture {self.name!r} of {self.scope} scope{MADE_FOR}{self.nodeid}"


class Owners:
    """The owners that are alive, and those that have ended since anybody asked."""

    def __init__(self) -> None:
        self._fixtures: dict[int, FixtureOwner] = {}
        self._ended: list[object] = []

    def fixture(self, fixturedef: pytest.FixtureDef[Any], nodeid: str) -> FixtureOwner | None:
        """The owner of what this fixture makes, if it is not simply the test."""
        if fixturedef.scope == "function":
            return None
        owner = FixtureOwner(fixturedef.argname, fixturedef.scope, nodeid)
        self._fixtures[id(fixturedef)] = owner
        return owner

    def of(self, fixturedef: pytest.FixtureDef[Any]) -> FixtureOwner | None:
        return self._fixtures.get(id(fixturedef))

    def end(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """A fixture has been torn down."""
        owner = self._fixtures.pop(id(fixturedef), None)
        if owner is not None:
            owner.left()
            self._ended.append(owner)

    def take_ended(self) -> list[object]:
        """Those that have ended since this was last asked."""
        ended, self._ended = self._ended, []
        return ended
