"""Owners of objects that are created in a test run: the test, or a fixture of a wider scope.

What a fixture of function scope creates belongs to the test. A wider fixture outlives the test;
what it creates is checked when it has been torn down.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest

from handfast._census import LiveObject
from handfast._leaks.leak import MADE_FOR
from handfast.pytest_plugin.leaks.lazy_parts import parts_of


class TestOwner:
    """A test, from its setup to the end of its teardown."""

    __test__ = False  # pytest would collect it for its name

    def __init__(self, item: pytest.Item) -> None:
        self.nodeid = item.nodeid

    def __str__(self) -> str:
        return self.nodeid


class FixtureOwner:
    """A fixture of class scope or wider; `nodeid` is the test that it was created for."""

    def __init__(self, fixturedef: pytest.FixtureDef[Any], nodeid: str) -> None:
        self.name = fixturedef.argname
        self.scope = fixturedef.scope
        self.nodeid = nodeid
        self._fixturedef = fixturedef
        self._teardown = ExitStack()

    def begin_teardown(self, context: AbstractContextManager[None]) -> None:
        """Enter `context`, which lasts until the teardown has ended."""
        self._teardown.enter_context(context)

    def end_teardown(self) -> None:
        """Leave that context."""
        self._teardown.close()

    def roots(self) -> list[Any]:
        """What holds all that belongs to the fixture: its value, and its generator."""
        value = getattr(self._fixturedef, "cached_result", None) or ()
        return [*value[:1], *getattr(self._fixturedef, "_finalizers", ())]

    def __str__(self) -> str:
        return f"fixture {self.name!r} of {self.scope} scope{MADE_FOR}{self.nodeid}"


class Owners:
    """The fixtures that own what they create, and those that have been torn down."""

    def __init__(self) -> None:
        self._fixtures: dict[int, FixtureOwner] = {}
        self._ended: list[object] = []

    def fixture(self, fixturedef: pytest.FixtureDef[Any], nodeid: str) -> FixtureOwner | None:
        """Return the owner of what this fixture creates; None if that is the test."""
        if fixturedef.scope == "function":
            return None
        owner = FixtureOwner(fixturedef, nodeid)
        self._fixtures[id(fixturedef)] = owner
        return owner

    def end(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """Note that a fixture has been torn down."""
        owner = self._fixtures.pop(id(fixturedef), None)
        if owner is not None:
            owner.end_teardown()
            self._ended.append(owner)

    def without_lazy_parts(self, leaked: list[LiveObject]) -> list[LiveObject]:
        """What a test has leaked, without what belongs to a fixture that still lives: that is
        checked with the fixture."""
        for owner in self._fixtures.values():
            parts = parts_of(owner.roots(), leaked) if leaked else []
            for live in parts:
                if live.creation is not None:
                    live.creation.owner = owner
            leaked = [live for live in leaked if live not in parts]
        return leaked

    def take_ended(self) -> list[object]:
        """Return the fixtures that were torn down since the last call."""
        ended, self._ended = self._ended, []
        return ended
