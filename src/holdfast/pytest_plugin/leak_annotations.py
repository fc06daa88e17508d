"""Leaks where a CI shows them: beside the line on GitHub, and in the JUnit file.

Text only: what is printed, and what is added to a test's properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from holdfast.leaks import Leak
from holdfast.leaks.summary import by_origin

__all__ = ["github_lines", "on_github", "properties"]

Level = Literal["error", "warning"]


def on_github(environ: Mapping[str, str]) -> bool:
    """Whether this runs in a workflow of GitHub."""
    return environ.get("GITHUB_ACTIONS") == "true"


def github_lines(leaks: Iterable[Leak], level: Level, root: Path) -> list[str]:
    """A workflow command for each origin, the most first: GitHub shows ten of a kind in a step.

    `root` is the folder of the repository, from which GitHub wants its files named.
    """
    return [_annotation(group, level, root) for group in by_origin(leaks)]


def properties(leaks: Iterable[Leak]) -> list[tuple[str, str]]:
    """What a test's `user_properties` get, and the JUnit file with them."""
    return [("holdfast.leak", _in_one_line(leak)) for leak in leaks]


def _annotation(group: Sequence[Leak], level: Level, root: Path) -> str:
    leak = group[0]
    about = {**_spot(leak, root), "title": f"{leak.code} {leak.kind.name}"}
    more = f"\n    and {len(group) - 1} more from this line" if group[1:] else ""
    listed = ",".join(f"{name}={_property(value)}" for name, value in about.items())
    return f"::{level} {listed}::{_data(str(leak) + more)}"


def _spot(leak: Leak, root: Path) -> dict[str, str]:
    """The line to show it at; none if that is not of this repository."""
    if leak.born is None or not Path(leak.born.filename).is_relative_to(root):
        return {}
    file = Path(leak.born.filename).relative_to(root).as_posix()
    return {"file": file, "line": str(leak.born.lineno)}


def _in_one_line(leak: Leak) -> str:
    return f"{leak.code} {leak.kind.name}: {leak.what}, born {leak.place}"


# As in toCommandValue and toCommandProperties of github.com/actions/toolkit, core/src/command.ts.


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
