"""The result of an audit: plain data for all outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

from handfast._audit.merge import Issue
from handfast._audit.observation import Evidence
from handfast._audit.project import Project
from handfast._audit.suite.interpreter import Interpreter


@dataclass
class LookedAt:
    """How much was looked at."""

    files: int = 0
    task_places: int = 0
    close_methods: int = 0
    tests: int = 0
    tasks: int = 0
    explored: int = 0
    schedules: int = 0

    def sentence(self) -> str:
        """All of it as text."""
        parts = [
            f"{_count(self.files, 'file')} ({_count(self.task_places, 'place')} where tasks are created, "
            f"{_count(self.close_methods, 'close method')})",
            f"{_count(self.tests, 'test')} ({_count(self.tasks, 'task')} created)",
            f"{_count(self.schedules, 'schedule')} of {_count(self.explored, 'async test')}",
        ]
        return ", ".join(parts)


@dataclass
class AuditReport:
    """What was found, how much was looked at, and what was not."""

    project: Project
    interpreter: Interpreter
    issues: list[Issue] = field(default_factory=list)
    looked_at: LookedAt = field(default_factory=LookedAt)
    # What was not checked and why, one sentence each.
    notes: list[str] = field(default_factory=list)
    # Findings that the pedantic rules of `check` would add.
    pedantic: int = 0
    # The command that runs the tests.
    pytest: str = "pytest"
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def sure(self) -> list[Issue]:
        """The issues without those that asyncio's own loop has not shown."""
        return [each for each in self.issues if each.evidence > Evidence.POSSIBLE]

    @property
    def possible(self) -> list[Issue]:
        """Schedules that break a test under the explorer, and were not confirmed."""
        return [each for each in self.issues if each.evidence == Evidence.POSSIBLE]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
