"""The corpus as files: one for each test, with numbers only.

A repository may come with such files, so every number is checked, links are not followed, and what is
not a regular file of a sensible size is ignored. The number of files is bounded; the oldest go first.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from handfast._explore.search.plan import Cancel, Plan

FOLDER = ".handfast"
_VERSION = 1
# Bytes of a file, files of a folder, schedules of a test, departures of a schedule.
_BYTES, _FILES, _ENTRIES, _DEPARTURES = 65_536, 2_000, 32, 500
_MOST = 2**31
_NAME = re.compile(r"[0-9a-f]{32}\.json")
_IGNORE = "# Made by handfast.\n*\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """A schedule, and how many of the schedules that branch from it were run."""

    plan: Plan
    position: int = 0


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is kept of one test: the number of searches, and schedules, the plain one first."""

    searches: int = 0
    plain: Entry = Entry(Plan())
    entries: tuple[Entry, ...] = ()


class CorpusFolder:
    """The files of a project."""

    def __init__(self, root: Path) -> None:
        self._above = root / FOLDER
        self._folder = self._above / "corpus"

    def load(self, key: str) -> Corpus:
        """What was kept under this key; an empty corpus if that is nothing, or not valid."""
        try:
            self._refuse_links()
            return _read(json.loads(_read_regular(self._path(key))))
        except (OSError, ValueError, TypeError, RecursionError):
            return Corpus()

    def save(self, key: str, corpus: Corpus) -> None:
        """Keep it. A folder that cannot be written is no error: then nothing is kept."""
        with suppress(OSError):
            self._refuse_links()
            if corpus == Corpus():
                self._path(key).unlink(missing_ok=True)
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            if not (self._above / ".gitignore").exists():
                self._write(self._above / ".gitignore", _IGNORE)
            self._write(self._path(key), _written(corpus))
            self._prune()

    def _path(self, key: str) -> Path:
        return self._folder / f"{blake2b(key.encode(), digest_size=16).hexdigest()}.json"

    def _refuse_links(self) -> None:
        for folder in (self._above, self._folder):
            if folder.is_symlink():
                raise OSError(f"{folder} is a link")

    @staticmethod
    def _write(path: Path, text: str) -> None:
        """Replace the file as a whole; a link in its place is replaced, not followed."""
        handle, beside = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(beside, path)
        except OSError:
            os.unlink(beside)
            raise

    def _prune(self) -> None:
        files = [each for each in os.scandir(self._folder) if _NAME.fullmatch(each.name)]
        if len(files) > _FILES:
            files.sort(key=lambda each: each.stat(follow_symlinks=False).st_mtime)
            for each in files[: len(files) - _FILES]:
                with suppress(FileNotFoundError):  # another process prunes too
                    os.unlink(each.path)


def _read_regular(path: Path) -> bytes:
    """The bytes of a regular file. A pipe would wait for its writer, a device never end."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(path, "rb", opener=lambda name, mode: os.open(name, mode | flags)) as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_size > _BYTES:
            raise OSError(f"not a regular file of at most {_BYTES:,} bytes")
        return file.read(_BYTES)


def _written(corpus: Corpus) -> str:
    """The text of a file: as many schedules as fit."""
    rows: list[Any] = [_VERSION, corpus.searches, _row(corpus.plain)]
    size = 0
    for entry in corpus.entries[:_ENTRIES]:
        row = _row(entry)
        size += len(json.dumps(row)) + 2
        if entry.plan.departures <= _DEPARTURES and size < _BYTES - 1_000:
            rows.append(row)
    return json.dumps(rows)


def _row(entry: Entry) -> list[Any]:
    choices = [list(each) for each in entry.plan.choices]
    return [entry.position, choices, [[c.instant, c.task] for c in entry.plan.cancels]]


def _read(rows: Any) -> Corpus:
    version, searches, plain, *entries = rows
    if version != _VERSION or len(entries) > _ENTRIES:
        raise ValueError("another version, or too many")
    first = _entry(plain)
    if first.plan.departures:
        raise ValueError("the first one is the plain order")
    return Corpus(_number(searches), first, tuple(map(_entry, entries)))


def _entry(row: Any) -> Entry:
    position, choices, cancels = row
    if len(choices) + len(cancels) > _DEPARTURES:
        raise ValueError("too many departures")
    plan = Plan(
        tuple((_number(at), _number(value)) for at, value in choices),
        tuple(Cancel(_number(instant), _number(task)) for instant, task in cancels),
    )
    at_each = [at for at, value in plan.choices if value]
    # A run meets its departures in this order, each once, and none of them is the plain answer.
    if at_each != sorted(set(at_each)) or len(at_each) < len(plan.choices):
        raise ValueError("the choices are not in order")
    if list(plan.cancels) != sorted(plan.cancels):
        raise ValueError("the cancels are not in order")
    return Entry(plan, _number(position))


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError(f"{value!r} is not a number")
    return value
