"""The leaks that are known: a file that is written once and read ever after, to stop new ones.

An entry has no line number, so that an edit above it does not make it stale. There is one entry
a line, sorted, so that a change of the file shows what came and what went.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.leaks.finding import MADE_FOR, Leak

__all__ = ["BadBaseline", "Baseline", "Known", "gone_in_words"]

_VERSION = 1
_AGAIN = "write it anew with --holdfast-write-baseline"
# What lies outside the project lies elsewhere on every machine.
_INSTALLED = re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/(.+)")


class BadBaseline(ValueError):
    """The file cannot be used as a baseline."""


class Known(NamedTuple):
    """What is known of a leak: who leaves it behind, what kind it is, where it is born."""

    owner: str
    code: str
    file: str
    function: str

    @classmethod
    def of(cls, leak: Leak, root: Path) -> Known:
        """What a baseline says of this leak; files are named as seen from `root`."""
        born = leak.born
        # Which test a fixture is made for depends on the order, and on the worker.
        owner = leak.owner.partition(MADE_FOR)[0]
        if born is None:
            return cls(owner, leak.code, "", "")
        return cls(owner, leak.code, _file(born.filename, root), born.function)

    def __str__(self) -> str:
        place = f" born in {self.file}, {self.function}" if self.file else ""
        return f"{self.code}{place}, left by {self.owner}"


class Baseline:
    """The leaks that are known, and how many of each; those found so far are counted off."""

    def __init__(self, counts: Mapping[Known, int], root: Path) -> None:
        self.counts = dict(counts)
        self._root = root
        self._left = Counter(self.counts)

    @classmethod
    def load(cls, path: Path, root: Path | None = None) -> Baseline:
        """Read it; `BadBaseline` says what is wrong with the file."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BadBaseline(f"there is no baseline at {path}: {_AGAIN}") from None
        except OSError as error:
            raise BadBaseline(f"the baseline {path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise BadBaseline(f"the baseline {path} is broken: {error}; {_AGAIN}") from None
        return cls(_counts(data, path), root or path.absolute().parent)

    @classmethod
    def write(cls, path: Path, leaks: Iterable[Leak], root: Path | None = None) -> Baseline:
        """Write what is known from now on: all of it, or, if that fails, nothing."""
        root = root or path.absolute().parent
        counts = Counter(Known.of(leak, root) for leak in leaks)
        lines = ",\n".join(
            "  " + json.dumps(known._asdict() | {"count": count}, ensure_ascii=False)
            for known, count in sorted(counts.items())
        )
        body = f"[\n{lines}\n ]" if lines else "[]"
        _replace(path, f'{{"version": {_VERSION},\n "leaks": {body}}}\n')
        return cls(counts, root)

    def sift(self, leaks: Iterable[Leak]) -> list[Leak]:
        """The leaks that are new: not known, or more of them than are known."""
        return [leak for leak in leaks if not self._counted_off(Known.of(leak, self._root))]

    def gone(self, seen: Iterable[Leak], ran: Collection[str] | None = None) -> tuple[Known, ...]:
        """The entries of which nothing was seen. With `ran`, only those of these owners: what
        did not run leaves nothing behind."""
        found = {Known.of(leak, self._root) for leak in seen}
        return tuple(
            known
            for known in sorted(self.counts)
            if known not in found and (ran is None or known.owner in ran)
        )

    def _counted_off(self, known: Known) -> bool:
        self._left[known] -= 1
        return self._left[known] >= 0


def gone_in_words(gone: Collection[Known]) -> str:
    """One line for the entries that no longer occur; empty if there are none."""
    if not gone:
        return ""
    if len(gone) == 1:
        return f"1 entry of the baseline no longer occurs: {_AGAIN}"
    return f"{len(gone)} entries of the baseline no longer occur: {_AGAIN}"


def _counts(data: Any, path: Path) -> dict[Known, int]:
    version = data.get("version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > _VERSION:
        raise BadBaseline(
            f"the baseline {path} has version {version}, and this holdfast reads up to {_VERSION}: "
            "use the holdfast that wrote it, or a later one"
        )
    try:
        if version != _VERSION:
            raise ValueError(f"version {version!r}")
        return {_known(entry): _count(entry) for entry in data["leaks"]}
    except (KeyError, TypeError, ValueError) as error:
        raise BadBaseline(f"{path} is no baseline of holdfast ({error!r}): {_AGAIN}") from None


def _known(entry: Mapping[str, Any]) -> Known:
    known = Known(*(entry[name] for name in Known._fields))
    if not all(isinstance(word, str) for word in known):
        raise TypeError(f"entry {entry!r}")
    return known


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


def _file(filename: str, root: Path) -> str:
    """The same on every machine, as far as that can be."""
    path = Path(filename)
    if not path.is_absolute():  # "<string>"
        return filename
    installed = _INSTALLED.fullmatch(path.as_posix())
    if path.is_relative_to(root) and not installed:
        return path.relative_to(root).as_posix()
    return installed[1] if installed else path.as_posix()
