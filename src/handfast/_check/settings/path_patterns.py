"""The patterns for paths in the settings: the syntax of `.gitignore`, without backslashes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple


class _Pattern(NamedTuple):
    segments: list[str]
    only_folders: bool
    negated: bool


class PathPatterns:
    """Patterns for paths in one folder. The last one that matches decides.

    >>> patterns = PathPatterns(["*.log", "!keep.log", "/build/"])
    >>> [patterns.match(path) for path in ("a/b.log", "keep.log", "build", "build/x.py")]
    [True, False, False, False]
    >>> patterns.match("build", is_folder=True), patterns.covers("build/x.py")
    (True, True)
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns = [_parsed(line.strip()) for line in lines if line.strip(" /")][::-1]

    def match(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether the patterns match a path; the folders that it is in are not considered."""
        parts = path.split("/")
        for pattern in self._patterns:
            if (is_folder or not pattern.only_folders) and _fit(pattern.segments, parts):
                return not pattern.negated
        return False

    def covers(self, path: str) -> bool:
        """Whether the patterns match a file, or one of the folders that it is in."""
        folders = [parent.as_posix() for parent in PurePosixPath(path).parents][:-1]
        return self.match(path) or any(self.match(folder, is_folder=True) for folder in folders)


def _parsed(line: str) -> _Pattern:
    text = line.removeprefix("!")
    only_folders = text.endswith("/")
    segments = text.rstrip("/").split("/")
    # A pattern without a slash matches a name in any folder.
    segments = ["**", *segments] if len(segments) == 1 else segments[segments[0] == "" :]
    return _Pattern(segments, only_folders, line.startswith("!"))


def _fit(segments: Sequence[str], parts: Sequence[str]) -> bool:
    # The numbers of segments that match the parts so far. A set, and no backtracking: a short
    # pattern such as `**/a/**/a/**/a` would take years on a deep path.
    matched = _past_stars(segments, {0})
    for part in parts:
        matched = _past_stars(segments, set(_after(part, segments, matched)))
    return len(segments) in matched


def _after(part: str, segments: Sequence[str], matched: Iterable[int]) -> Iterator[int]:
    for at in matched:
        if at < len(segments):
            if segments[at] == "**":
                yield from (at, at + 1)
            elif fnmatchcase(part, segments[at]):
                yield at + 1


def _past_stars(segments: Sequence[str], matched: set[int]) -> set[int]:
    """Add the positions after `**`: it matches no part as well, except at the end of a pattern."""
    for at, segment in enumerate(segments[:-1]):
        if at in matched and segment == "**":
            matched.add(at + 1)
    return matched
