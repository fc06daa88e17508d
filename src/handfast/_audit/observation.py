"""What one tool has seen once: the kind of bug, its lines, and the command that shows it again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Literal, NamedTuple

Tool = Literal["check", "leaks", "explore", "explore with cancel"]


class Evidence(IntEnum):
    """How sure a finding is, the surest last."""

    POSSIBLE = 0  # a schedule that asyncio's own loop has not shown
    READ = 1  # read in the source
    SEEN = 2  # happened in a test, as it is
    FAILS = 3  # a schedule breaks a test, confirmed on asyncio's own loop


class Place(NamedTuple):
    """A line of a file. The path is relative to the project if it is inside."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Observation:
    """One finding of one tool."""

    tool: Tool
    code: str
    message: str
    place: Place | None
    """The line that creates the task or the resource; else where it went wrong."""
    related: frozenset[Place] = frozenset()
    evidence: Evidence = Evidence.READ
    command: str = ""
    detail: str = ""
    """More of it, as the tool prints it: a stack, a timeline."""
    fix: str = ""
    when: str = ""
    """What has to happen, for a failure that needs a certain schedule."""
    tests: tuple[str, ...] = ()

    @property
    def places(self) -> frozenset[Place]:
        """All its lines."""
        return self.related | ({self.place} if self.place is not None else set())

    def with_pytest(self, pytest: str) -> Observation:
        """The same, with another command for pytest."""
        if not self.command.startswith("pytest "):
            return self
        command = pytest + self.command.removeprefix("pytest")
        return replace(self, command=command, detail=self.detail.replace(self.command, command))


_PLACE = re.compile(
    r"(?:.*?\b(?:created|acquired|used|started|waiting) at )?(.+?):(\d+)(?: in .*)?"
)


def place_in(text: str, root: Path) -> Place | None:
    """The line that a text such as `acquired at a.py:3 in f` names."""
    found = _PLACE.fullmatch(text)
    return Place(relative(found[1], root), int(found[2])) if found else None


def relative(path: str, root: Path) -> str:
    """A path relative to the project, if it is inside. Tools run with the project as their folder."""
    whole = root / path
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else str(whole)
