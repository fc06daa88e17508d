"""How a baseline is kept in a file: one entry a line, sorted and counted, so that a change of the
file shows what came and what went; and it is written whole or not at all. What an entry says, and
what it matches, is known only to the room that writes it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["BadBaseline", "BaselineFile"]

_VERSION = 1

Words = tuple[str, ...]
"""An entry: what stands in its fields."""


class BadBaseline(ValueError):
    """The file cannot be used as a baseline."""


class BaselineFile(NamedTuple):
    """The files of one room: what they list, the fields of an entry, and how to write one anew."""

    lists: str
    fields: Words
    again: str

    def read(self, path: Path) -> dict[Words, int]:
        """The entries, and how many of each; `BadBaseline` says what is wrong with the file."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BadBaseline(f"there is no baseline at {path}: {self.again}") from None
        except OSError as error:
            raise BadBaseline(f"the baseline {path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise BadBaseline(f"the baseline {path} is broken: {error}; {self.again}") from None
        return self._counts(data, path)

    def write(self, path: Path, counts: Iterable[tuple[Words, int]]) -> None:
        """Write what is known from now on: all of it, or, if that fails, nothing."""
        lines = ",\n".join(self._line(words, count) for words, count in sorted(counts))
        body = f"[\n{lines}\n ]" if lines else "[]"
        _replace(path, f'{{"version": {_VERSION},\n "{self.lists}": {body}}}\n')

    def gone_in_words(self, gone: int) -> str:
        """One line for the entries that no longer occur; empty if there are none."""
        if not gone:
            return ""
        what = "1 entry of the baseline no longer occurs"
        if gone > 1:
            what = f"{gone} entries of the baseline no longer occur"
        return f"{what}: {self.again}"

    def _line(self, words: Words, count: int) -> str:
        entry = dict(zip(self.fields, words, strict=True))
        return "  " + json.dumps(entry | {"count": count}, ensure_ascii=False)

    def _counts(self, data: Any, path: Path) -> dict[Words, int]:
        version = data.get("version") if isinstance(data, dict) else None
        if isinstance(version, int) and version > _VERSION:
            raise BadBaseline(
                f"the baseline {path} has version {version}, and this holdfast reads up to "
                f"{_VERSION}: use the holdfast that wrote it, or a later one"
            )
        try:
            if version != _VERSION:
                raise ValueError(f"version {version!r}")
            return {self._words(entry): _count(entry) for entry in data[self.lists]}
        except (KeyError, TypeError, ValueError) as error:
            told = f"{path} is no baseline of holdfast ({error!r}): {self.again}"
            raise BadBaseline(told) from None

    def _words(self, entry: Mapping[str, Any]) -> Words:
        words = tuple(entry[name] for name in self.fields)
        if not all(isinstance(word, str) for word in words):
            raise TypeError(f"entry {entry!r}")
        return words


def _count(entry: Mapping[str, Any]) -> int:
    count = entry["count"]
    if type(count) is not int or count < 1:
        raise ValueError(f"count {count!r}")
    return count


def _replace(path: Path, text: str) -> None:
    """Beside it first: whoever reads meanwhile, or after a crash, sees the old or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(beside, _mode(path))
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _mode(path: Path) -> int:
    """As the file has it: a temporary one is for its maker's eyes only."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        return 0o644
