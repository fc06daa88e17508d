"""What a case is: the system of a report, three times in the same shape, and what is said of it.

A case is a package. By name it has:

    as_reported, as_proposed, as_it_should_be    the three programs, small enough to read
    schedules    three coroutine functions of these names: the programs on the explored loop
    real         the same three with their real parts: children, servers, libraries
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["AS_IT_SHOULD_BE", "AS_PROPOSED", "AS_REPORTED", "VERSIONS", "Case", "Claim"]

AS_REPORTED, AS_PROPOSED, AS_IT_SHOULD_BE = VERSIONS = (
    "as_reported",
    "as_proposed",
    "as_it_should_be",
)
Program = Callable[[], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a report says, what is true, and the command that shows it."""

    report: str
    truth: str
    shown_by: str


@dataclass(frozen=True, slots=True)
class Case:
    """One system. `options` are what `explore` is asked for with each version's schedules."""

    name: str
    seed: str
    title: str
    story: str
    claims: tuple[Claim, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    """What has to be importable for its real parts."""

    @property
    def package(self) -> str:
        return f"{__package__}.{self.name}"

    def module(self, name: str) -> ModuleType:
        """One of its files."""
        return import_module(f"{self.package}.{name}")

    def path(self, name: str) -> str:
        """Where one of its files lies. It is not imported for that: a library may be missing."""
        spec = find_spec(f"{self.package}.{name}")
        assert spec is not None
        assert spec.origin is not None
        return spec.origin

    def scheduled(self, version: str) -> Program:
        """A version as the explorer runs it."""
        program: Program = getattr(self.module("schedules"), version)
        return program

    def real(self, version: str) -> Program:
        """A version with its real parts; it returns a line that says what happened."""
        program: Program = getattr(self.module("real"), version)
        return program

    @property
    def missing(self) -> tuple[str, ...]:
        """What its real parts need and is not installed."""
        return tuple(each for each in self.needs if find_spec(each) is None)
