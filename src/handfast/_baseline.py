"""Baselines: known findings in a file, of which only new ones are reported.

The file has one sorted entry per line with a count, so that its diff shows what changed, and is
replaced atomically. `check` and `leaks` each have a `key()` function that gives the entry of a
finding.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

_VERSION = 1

Entry = tuple[str, ...]
"""The values of an entry's fields."""

Item = TypeVar("Item")
"""A finding."""


class BadBaseline(ValueError):
    """The file cannot be used as a baseline."""


class BaselineFile(NamedTuple):
    """A file format: what it lists, the fields of an entry, and how a user rewrites the file."""

    lists: str
    fields: Entry
    rewrite: str

    def read(self, path: Path) -> dict[Entry, int]:
        """The entries, and how many of each. `BadBaseline` says what is wrong with the file."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BadBaseline(f"there is no baseline at {path}: {self.rewrite}") from None
        except OSError as error:
            raise BadBaseline(f"the baseline {path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise BadBaseline(f"the baseline {path} is broken: {error}; {self.rewrite}") from None
        return self._counts(data, path)

    def write(self, path: Path, counts: Iterable[tuple[Entry, int]]) -> None:
        """Write all entries or, if that fails, nothing."""
        lines = ",\n".join(self._line(entry, count) for entry, count in sorted(counts))
        body = f"[\n{lines}\n ]" if lines else "[]"
        _replace(path, f'{{"version": {_VERSION},\n "{self.lists}": {body}}}\n')

    def gone_text(self, gone: int) -> str:
        """One line for the entries that no longer occur; empty if there are none."""
        if not gone:
            return ""
        what = "1 entry of the baseline no longer occurs"
        if gone > 1:
            what = f"{gone} entries of the baseline no longer occur"
        return f"{what}: {self.rewrite}"

    def _line(self, entry: Entry, count: int) -> str:
        fields = dict(zip(self.fields, entry, strict=True))
        return "  " + json.dumps(fields | {"count": count}, ensure_ascii=False)

    def _counts(self, data: Any, path: Path) -> dict[Entry, int]:
        version = data.get("version") if isinstance(data, dict) else None
        if isinstance(version, int) and version > _VERSION:
            raise BadBaseline(
                f"the baseline {path} has version {version}, and this handfast reads up to "
                f"{_VERSION}: use the handfast that wrote it, or a later one"
            )
        try:
            if version != _VERSION:
                raise ValueError(f"version {version!r}")
            return {self._entry(fields): _count(fields) for fields in data[self.lists]}
        except (KeyError, TypeError, ValueError) as error:
            raise BadBaseline(
                f"{path} is no baseline of handfast ({error!r}): {self.rewrite}"
            ) from None

    def _entry(self, fields: Mapping[str, Any]) -> Entry:
        entry = tuple(fields[name] for name in self.fields)
        if not all(isinstance(value, str) for value in entry):
            raise TypeError(f"entry {fields!r}")
        return entry


class Baseline(Generic[Item]):
    """The known findings, and how many of each. Those that occur are counted off."""

    def __init__(
        self, path: Path, counts: Mapping[Entry, int], key: Callable[[Item], Entry]
    ) -> None:
        self.path = path
        self.counts = dict(counts)
        self._key = key
        self._left = Counter(self.counts)

    @classmethod
    def load(cls, file: BaselineFile, path: Path, key: Callable[[Item], Entry]) -> Baseline[Item]:
        """Read a baseline; `BadBaseline` says what is wrong with the file."""
        return cls(path, file.read(path), key)

    @classmethod
    def write(
        cls, file: BaselineFile, path: Path, items: Iterable[Item], key: Callable[[Item], Entry]
    ) -> Baseline[Item]:
        """Write all `items` as known."""
        counts = Counter(map(key, items))
        file.write(path, counts.items())
        return cls(path, counts, key)

    def new(self, items: Iterable[Item]) -> list[Item]:
        """The items that are not known, or that are more than are known."""
        return [item for item in items if not self._count_off(self._key(item))]

    def not_seen(self, in_scope: Callable[[Entry], bool]) -> dict[Entry, int]:
        """How many of each entry in scope have not occurred in any call of `new`."""
        return {entry: left for entry, left in self._left.items() if left > 0 and in_scope(entry)}

    def _count_off(self, entry: Entry) -> bool:
        if self._left[entry] <= 0:
            return False
        self._left[entry] -= 1
        return True


def _count(fields: Mapping[str, Any]) -> int:
    count = fields["count"]
    if type(count) is not int or count < 1:
        raise ValueError(f"count {count!r}")
    return count


def _replace(path: Path, text: str) -> None:
    """Write a temporary file first: a reader, also after a crash, sees the old or the new text."""
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
    """The mode of the existing file: a temporary file is readable by its owner only."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        return 0o644
