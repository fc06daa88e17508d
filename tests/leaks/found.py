"""Findings to work on, without anything that was ever alive."""

from __future__ import annotations

from pathlib import Path

from holdfast.leaks import Leak
from holdfast.leaks.place import Place

__all__ = ["ROOT", "a_leak", "a_place"]

ROOT = Path("/project").absolute()


def a_place(text: str, source: str = "") -> Place:
    """From "bot.py:12 in Bot.start", a line of the project's."""
    file, _, function = text.partition(" in ")
    name, _, line = file.rpartition(":")
    return Place(text, str(ROOT / name), int(line), function, source)


def a_leak(
    code: str = "HF102",
    what: str = "task 'poll' running Bot._poll",
    *,
    owner: str = "tests/test_bot.py::test_start",
    born: str | None = "src/bot.py:12 in Bot.start",
    near: str | None = None,
    stands: tuple[str, ...] = (),
) -> Leak:
    """One thing that was left behind."""
    return Leak(
        code,
        what,
        check="tasks",
        owner=owner,
        born=None if born is None else a_place(born, "self._task = create_task(self._poll())"),
        near=None if near is None else a_place(near),
        stands=stands,
    )
