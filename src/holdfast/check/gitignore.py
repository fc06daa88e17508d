"""The patterns of a .gitignore: what they match, and that the last one which matches wins.

https://git-scm.com/docs/gitignore is followed, but for the patterns of the user's own machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePosixPath

__all__ = ["Patterns"]


class Patterns:
    """The patterns of one file, which count for the folder that it stands in.

    >>> patterns = Patterns(["*.log", "!keep.log", "/build/"])
    >>> patterns.judge("a/b.log", is_folder=False)
    True
    >>> patterns.judge("keep.log", is_folder=False)
    False
    >>> patterns.judge("a/build", is_folder=True) is None
    True
    """

    __slots__ = ("_rules",)

    def __init__(self, lines: Iterable[str]) -> None:
        rules = (_rule(line) for line in lines)
        # From the last to the first: the first that matches then decides.
        self._rules = [rule for rule in rules if rule is not None][::-1]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def judge(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether a path, seen from the folder of the patterns, is ignored; None: they say
        nothing of it. What lies in an ignored folder is not asked for: nobody goes there."""
        name = path.rpartition("/")[2]
        for match, anchored, only_folders, ignores in self._rules:
            if (is_folder or not only_folders) and match(path if anchored else name):
                return ignores
        return None

    def covers(self, path: str) -> bool:
        """Whether a file is meant, itself or by one of the folders that it lies in."""
        folders = [parent.as_posix() for parent in PurePosixPath(path).parents][:-1]
        return self.judge(path, is_folder=False) is True or any(
            self.judge(folder, is_folder=True) for folder in folders
        )


def _rule(line: str) -> tuple[_Match, bool, bool, bool] | None:
    # A trailing blank counts only behind a backslash.
    text = re.sub(r"(?<!\\)\s+$", "", line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    ignores = not text.startswith("!")
    text = text if ignores else text[1:]
    only_folders = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    if not text:
        return None
    return _compiled(text.lstrip("/")), anchored, only_folders, ignores


class _Match:
    """A compiled pattern, called."""

    __slots__ = ("_fullmatch",)

    def __init__(self, expression: str) -> None:
        try:
            self._fullmatch = re.compile(expression, re.DOTALL).fullmatch
        except re.error:  # git takes a broken pattern for one that matches nothing
            self._fullmatch = re.compile(r"(?!)").fullmatch

    def __call__(self, text: str) -> bool:
        return self._fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> _Match:
    return _Match("".join(_expression(pattern)))


_TOKEN = re.compile(
    r"(?P<deep>^\*\*/)|(?P<below>/\*\*$)|(?P<between>/\*\*/)|(?P<any>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?[^\]/]*)\]|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)


def _expression(pattern: str) -> Iterable[str]:
    for token in _TOKEN.finditer(pattern):
        match token.lastgroup:
            case "deep":
                yield "(?:.*/)?"
            case "below":
                yield "/.+"
            case "between":
                yield "/(?:.*/)?"
            case "any":
                yield "[^/]*"
            case "one":
                yield "[^/]"
            case "set":
                letters = token["set"].replace("\\", "\\\\").replace("[", "\\[")
                letters = letters.replace("]", "\\]")
                yield f"[{'^/' if token['not'] else ''}{letters}]"
            case _:
                yield re.escape(token["escaped"] or token["plain"])
