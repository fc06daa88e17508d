"""A report with sample findings, for the tests of output formats."""

from __future__ import annotations

from handfast._check.finding import Confidence, Edit, Finding, Fix, Related, Span
from handfast._check.report import FileError, Report

__all__ = ["DROPPED", "FINDING", "REPORT", "lines"]

SOURCE = """\
class Bot:
    def start(self):
        self._task = create_task(self._run())

    async def close(self):
        self._session = None
        self._task.cancel()
"""
FINDING = Finding(
    "HF301",
    "The session is cleared while the task still reads it",
    Span("src/bot.py", 6, 9, 6, 29),
    (
        Related(Span("src/bot.py", 3, 22, 3, 46), "the task is created here"),
        Related(Span("src/other bot.py", 1, 1, 2, 5), "and read here"),
    ),
    Fix("Cancel and join it first", (Edit(Span("src/bot.py", 6, 9, 6, 29), "pass"),)),
    harm="corruption",
)
UNUSED = Finding(
    "HF001", "Unused noqa comment", Span("src/bot.py", 1, 11, 1, 12),
    fix=Fix("Remove the comment", (Edit(Span("src/bot.py", 1, 11, 1, 12), ""),), True),
)  # fmt: skip
REPORT = Report(
    (UNUSED, FINDING), (FileError("src/broken.py", 7, "syntax error: '(' was never closed"),),
    ("src/bot.py", "src/broken.py"), ("n.ipynb",),
)  # fmt: skip


def _dropped(line: int, confidence: Confidence = "high") -> Finding:
    place = Span("pkg/a.py", line, 1, line, 2)
    message = f"drops `{line}`"
    return Finding(
        "HF101", message, place, confidence=confidence, harm="lost work", cause="pkg no reference"
    )


DROPPED = Report((*map(_dropped, (1, 2, 3)), _dropped(4, "medium")), (), ("pkg/a.py",))
"""Three places with one cause, and one that is less sure."""


def lines(path: str) -> list[str]:
    return SOURCE.splitlines() if path != "src/broken.py" else []
