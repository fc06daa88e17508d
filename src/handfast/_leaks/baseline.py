"""The baseline of known leaks: only new ones are reported.

An entry has no line number, so that an edit above it does not invalidate it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from handfast._baseline import Baseline, BaselineFile
from handfast._code_owner import installed_path
from handfast._leaks.leak import MADE_FOR, Leak


class KnownLeak(NamedTuple):
    """An entry: whose leak it is, its code, and where it is created."""

    owner: str
    code: str
    file: str
    function: str


FILE = BaselineFile("leaks", KnownLeak._fields, "rewrite it with --handfast-write-baseline")


def load(path: Path, root: Path | None = None) -> Baseline[Leak]:
    """Read a baseline; files are named relative to `root`. Raises `BadBaseline`."""
    root = root or path.absolute().parent
    return Baseline.load(FILE, path, lambda leak: key(leak, root))


def write(path: Path, leaks: Iterable[Leak], root: Path | None = None) -> Baseline[Leak]:
    """Write all `leaks` as known."""
    root = root or path.absolute().parent
    return Baseline.write(FILE, path, leaks, lambda leak: key(leak, root))


def gone(baseline: Baseline[Leak], ran: Collection[str] | None = None) -> int:
    """How many entries no longer occur at all. With `ran`, only those of these owners: what did
    not run cannot leak."""
    left = baseline.not_seen(lambda entry: ran is None or entry[0] in ran)
    return sum(count == baseline.counts[entry] for entry, count in left.items())


def key(leak: Leak, root: Path) -> KnownLeak:
    """The entry of a leak."""
    # Which test a fixture is made for depends on the order, and on the worker.
    owner = leak.owner.partition(MADE_FOR)[0]
    line = leak.created_at
    if line is None:
        return KnownLeak(owner, leak.code, "", "")
    return KnownLeak(owner, leak.code, _portable_name(line.filename, root), line.function)


def _portable_name(filename: str, root: Path) -> str:
    """The name of a file, the same on every machine where possible."""
    path = Path(filename)
    if not path.is_absolute():  # "<string>"
        return filename
    # The folder of installed code differs between machines.
    installed = installed_path(filename)
    if installed is not None:
        return installed
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
