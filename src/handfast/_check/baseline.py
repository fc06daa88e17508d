"""The baseline of known findings: only new ones are reported.

An entry has no line number but a digest of the line's text, so that it survives an edit above.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from handfast._baseline import Baseline, BaselineFile
from handfast._check.engine.file_facts import digest
from handfast._check.finding import Finding

LinesOf = Callable[[str], list[str]]
"""The lines of a file."""


class KnownFinding(NamedTuple):
    """An entry: the file, the code, and a digest of the line with its whitespace normalized."""

    path: str
    code: str
    source: str


FILE = BaselineFile("findings", KnownFinding._fields, "rewrite it with --write-baseline")


def load(path: Path, lines_of: LinesOf) -> Baseline[Finding]:
    """Read a baseline; files are named relative to its folder. Raises `BadBaseline`."""
    root = path.absolute().parent
    return Baseline.load(FILE, path, lambda finding: key(finding, root, lines_of))


def write(path: Path, findings: Iterable[Finding], lines_of: LinesOf) -> Baseline[Finding]:
    """Write all `findings` as known."""
    root = path.absolute().parent
    return Baseline.write(FILE, path, findings, lambda finding: key(finding, root, lines_of))


def gone(baseline: Baseline[Finding], checked: Collection[str]) -> int:
    """How many known findings of the checked files no longer occur."""
    here = {_relative(path, baseline.path.absolute().parent) for path in checked}
    return sum(baseline.not_seen(lambda entry: entry[0] in here).values())


def key(finding: Finding, root: Path, lines_of: LinesOf) -> KnownFinding:
    """The entry of a finding."""
    place = finding.place
    lines = lines_of(place.path)
    line = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    text = " ".join(line.split())
    return KnownFinding(_relative(place.path, root), finding.code, digest(text.encode())[:16])


def _relative(path: str, root: Path) -> str:
    """The path as seen from the folder of the baseline, the same on every machine."""
    return os.path.relpath(path, root).replace(os.sep, "/") if path != "-" else path
