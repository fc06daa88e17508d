"""The findings that are known: a file that is written once and read ever after, to stop new ones.

An entry has no line number: it knows the text of the line, so that it survives an edit above. There
is one entry a line, sorted, so that a change of the file shows what came and what went.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.check.facts import digest
from holdfast.check.finding import Finding

__all__ = ["BadBaseline", "Baseline", "Known", "gone_in_words"]

_VERSION = 1
_AGAIN = "write it anew with --write-baseline"

LinesOf = Callable[[str], list[str]]
"""The lines of a file."""


class BadBaseline(ValueError):
    """The file cannot be used as a baseline."""


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
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise BadBaseline(f"there is no baseline at {path}: {_AGAIN}") from None
        except OSError as error:
            raise BadBaseline(f"the baseline {path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise BadBaseline(f"the baseline {path} is broken: {error}; {_AGAIN}") from None
        return cls(_counts(data, path), path.absolute().parent, lines_of)

    @classmethod
    def write(cls, path: Path, findings: Iterable[Finding], lines_of: LinesOf) -> Baseline:
        """Write what is known from now on: all of it, or, if that fails, nothing."""
        root = path.absolute().parent
        counts = Counter(Known.of(finding, root, lines_of) for finding in findings)
        lines = ",\n".join(
            "  " + json.dumps(known._asdict() | {"count": count}, ensure_ascii=False)
            for known, count in sorted(counts.items())
        )
        body = f"[\n{lines}\n ]" if lines else "[]"
        _replace(path, f'{{"version": {_VERSION},\n "findings": {body}}}\n')
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
    if not gone:
        return ""
    what = "1 entry of the baseline no longer occurs"
    if gone > 1:
        what = f"{gone} entries of the baseline no longer occur"
    return f"{what}: {_AGAIN}"


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
        return {_entry(entry): _count(entry) for entry in data["findings"]}
    except (KeyError, TypeError, ValueError) as error:
        raise BadBaseline(f"{path} is no baseline of holdfast ({error!r}): {_AGAIN}") from None


def _entry(entry: Mapping[str, Any]) -> Known:
    known = Known(*(entry[name] for name in Known._fields))
    if not all(isinstance(word, str) for word in known):
        raise TypeError(f"entry {entry!r}")
    return known


def _count(entry: Mapping[str, Any]) -> int:
    count = entry["count"]
    if type(count) is not int or count < 1:
        raise ValueError(f"count {count!r}")
    return count


def _seen_from(path: str, root: Path) -> str:
    """The same on every machine, as far as that can be."""
    return os.path.relpath(path, root).replace(os.sep, "/") if path != "-" else path


def _replace(path: Path, text: str) -> None:
    """Beside it first: whoever reads meanwhile, or after a crash, sees the old or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
