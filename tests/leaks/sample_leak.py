"""Leaks to test with, without live objects."""

from __future__ import annotations

from pathlib import Path

from handfast._leaks.leak import CodeLine
from handfast.leaks import Leak

__all__ = ["ROOT", "a_leak", "a_place"]

ROOT = Path("/project").absolute()
SOURCE = "self._task = create_task(self._poll())"


def a_place(text: str, source: str = "") -> CodeLine:
    """From "bot.py:12 in Bot.start", a line of the project's."""
    file, _, function = text.partition(" in ")
    name, _, line = file.rpartition(":")
    return CodeLine(text, str(ROOT / name), int(line), function, source)


def a_leak(
    code: str = "HF102",
    what: str = "task 'poll' running Bot._poll",
    *,
    owner: str = "tests/test_bot.py::test_start",
    created_at: str | None = "src/bot.py:12 in Bot.start",
    created_via: str | None = None,
    waiting_at: tuple[str, ...] = (),
) -> Leak:
    """A leak."""
    return Leak(
        code,
        what,
        check="tasks",
        owner=owner,
        created_at=None
        if created_at is None
        else a_place(created_at, "self._task = create_task(self._poll())"),
        created_via=None if created_via is None else a_place(created_via),
        waiting_at=waiting_at,
    )
