"""`Example`: the system of one report in three versions, with the report's claims.

An example is a package with these modules:

    as_reported, as_proposed, fixed    the three versions, small enough to read
    explored    a coroutine function for each version: the program for `explore`
    real        a coroutine function for each version, with real children, servers and libraries
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["AS_PROPOSED", "AS_REPORTED", "FIXED", "VERSIONS", "Claim", "Example"]

AS_REPORTED, AS_PROPOSED, FIXED = VERSIONS = ("as_reported", "as_proposed", "fixed")
Program = Callable[[], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a report says, what is true, and the command that shows it."""

    report: str
    truth: str
    shown_by: str


@dataclass(frozen=True, slots=True)
class Example:
    """The system of one report."""

    name: str
    number: int
    """The number of the report."""
    title: str
    story: str
    claims: tuple[Claim, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options with which `explore` runs each version."""
    needs: tuple[str, ...] = ()
    """The libraries that its real parts import."""

    @property
    def package(self) -> str:
        return f"{__package__}.{self.name}"

    def module(self, name: str) -> ModuleType:
        """One of its modules."""
        return import_module(f"{self.package}.{name}")

    def path(self, name: str) -> str:
        """The file of one of its modules. Does not import it: a library may be missing."""
        spec = find_spec(f"{self.package}.{name}")
        assert spec is not None
        assert spec.origin is not None
        return spec.origin

    def explored(self, version: str) -> Program:
        """A version as a program for `explore`."""
        program: Program = getattr(self.module("explored"), version)
        return program

    def real(self, version: str) -> Program:
        """A version with its real parts; it returns a line that says what happened."""
        program: Program = getattr(self.module("real"), version)
        return program

    @property
    def missing(self) -> tuple[str, ...]:
        """The libraries that its real parts need and that are not installed."""
        return tuple(each for each in self.needs if find_spec(each) is None)
