"""The findings that are known: a file that is written once and read ever after, to stop new ones.

An entry has no line number: it knows the text of the line, so that it survives an edit above. How
the file is written and read is `holdfast.baseline_file`'s work.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from holdfast.baseline_file import BadBaseline, BaselineFile
from holdfast.check.facts import digest
from holdfast.check.finding import Finding

__all__ = ["BadBaseline", "Baseline", "Known", "gone_in_words"]

LinesOf = Callable[[str], list[str]]
"""The lines of a file."""


class Known(NamedTuple):
    """What is known of a finding: where it is, what kind it is, how its line reads."""

    path: str
    code: str
    source: str
    """A digest of the line, with its blanks evened out."""

    @classmethod
    def of(cls, finding: Finding, root: Path, lines_of: LinesOf) -> Known:
        """What a baseline says of this finding; paths are named as seen from `root`."""
        place = finding.place
        lines = lines_of(place.path)
        line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
        text = " ".join(line.split())
        return cls(_seen_from(place.path, root), finding.code, digest(text.encode())[:16])


_FILE = BaselineFile("findings", Known._fields, "write it anew with --write-baseline")


class Baseline:
    """The findings that are known, and how many of each; those found so far are counted off."""

    def __init__(self, counts: Mapping[Known, int], root: Path, lines_of: LinesOf) -> None:
        self.counts = dict(counts)
        self._root = root
        self._lines_of = lines_of
        self._left = Counter(self.counts)

    @classmethod
    def load(cls, path: Path, lines_of: LinesOf) -> Baseline:
        """Read it; `BadBaseline` says what is wrong with the file."""
        counts = {Known(*words): count for words, count in _FILE.read(path).items()}
        return cls(counts, path.absolute().parent, lines_of)

    @classmethod
    def write(cls, path: Path, findings: Iterable[Finding], lines_of: LinesOf) -> Baseline:
        """Write what is known from now on: all of it, or, if that fails, nothing."""
        root = path.absolute().parent
        counts = Counter(Known.of(finding, root, lines_of) for finding in findings)
        _FILE.write(path, counts.items())
        return cls(counts, root, lines_of)

    def sift(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that are new: not known, or more of them than are known."""
        return [each for each in findings if not self._counted_off(self._known(each))]

    def gone(self, checked: Collection[str]) -> int:
        """How many entries of the files that were checked no longer occur."""
        here = {_seen_from(path, self._root) for path in checked}
        return sum(left for known, left in self._left.items() if left > 0 and known.path in here)

    def _known(self, finding: Finding) -> Known:
        return Known.of(finding, self._root, self._lines_of)

    def _counted_off(self, known: Known) -> bool:
        if self._left[known] <= 0:
            return False
        self._left[known] -= 1
        return True


def gone_in_words(gone: int) -> str:
    """One line for the entries that no longer occur; empty if there are none."""
    return _FILE.gone_in_words(gone)


def _seen_from(path: str, root: Path) -> str:
    """The same on every machine, as far as that can be."""
    return os.path.relpath(path, root).replace(os.sep, "/") if path != "-" else path
