"""The leaks that are known: a file that is written once and read ever after, to stop new ones.

An entry has no line number, so that an edit above it does not make it stale. How the file is
written and read is `holdfast.baseline_file`'s work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from holdfast.baseline_file import BadBaseline, BaselineFile
from holdfast.leaks.finding import MADE_FOR, Leak

__all__ = ["BadBaseline", "Baseline", "Known", "gone_in_words"]

# What lies outside the project lies elsewhere on every machine.
_INSTALLED = re.compile(r".*/(?:site-packages|dist-packages|lib/python3\.\d+)/(.+)")


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


_FILE = BaselineFile("leaks", Known._fields, "write it anew with --holdfast-write-baseline")


class Baseline:
    """The leaks that are known, and how many of each; those found so far are counted off."""

    def __init__(self, counts: Mapping[Known, int], root: Path) -> None:
        self.counts = dict(counts)
        self._root = root
        self._left = Counter(self.counts)

    @classmethod
    def load(cls, path: Path, root: Path | None = None) -> Baseline:
        """Read it; `BadBaseline` says what is wrong with the file."""
        counts = {Known(*words): count for words, count in _FILE.read(path).items()}
        return cls(counts, root or path.absolute().parent)

    @classmethod
    def write(cls, path: Path, leaks: Iterable[Leak], root: Path | None = None) -> Baseline:
        """Write what is known from now on: all of it, or, if that fails, nothing."""
        root = root or path.absolute().parent
        counts = Counter(Known.of(leak, root) for leak in leaks)
        _FILE.write(path, counts.items())
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
    return _FILE.gone_in_words(len(gone))


def _file(filename: str, root: Path) -> str:
    """The same on every machine, as far as that can be."""
    path = Path(filename)
    if not path.is_absolute():  # "<string>"
        return filename
    installed = _INSTALLED.fullmatch(path.as_posix())
    if path.is_relative_to(root) and not installed:
        return path.relative_to(root).as_posix()
    return installed[1] if installed else path.as_posix()
