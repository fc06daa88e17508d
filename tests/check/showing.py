"""Findings to show, for the tests of the forms in which they are shown."""

from __future__ import annotations

from holdfast.check.finding import Edit, Finding, Fix, Place, Related
from holdfast.check.report import Report, Trouble

__all__ = ["FINDING", "REPORT", "lines"]

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
    Place("src/bot.py", 6, 9, 6, 29),
    (
        Related(Place("src/bot.py", 3, 22, 3, 46), "the task is born here"),
        Related(Place("src/other bot.py", 1, 1, 2, 5), "and read here"),
    ),
    Fix("Cancel and join it first", (Edit(Place("src/bot.py", 6, 9, 6, 29), "pass"),)),
    show="pytest -k close --holdfast",
)
UNUSED = Finding(
    "HF001", "This noqa takes nothing back", Place("src/bot.py", 1, 11, 1, 12),
    fix=Fix("Remove the comment", (Edit(Place("src/bot.py", 1, 11, 1, 12), ""),), True),
)  # fmt: skip
REPORT = Report(
    (UNUSED, FINDING), (Trouble("src/broken.py", 7, "syntax error: '(' was never closed"),),
    ("src/bot.py", "src/broken.py"), ("n.ipynb",),
)  # fmt: skip


def lines(path: str) -> list[str]:
    return SOURCE.splitlines() if path != "src/broken.py" else []
