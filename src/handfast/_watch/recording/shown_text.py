"""Names and lines as a snapshot shows them: short, and without characters that control a terminal."""

from __future__ import annotations

import os
from types import CodeType

from handfast._code_owner import installed_path
from handfast._origin import Origin

LIMIT = 200
"""A name is cut to so many characters."""


def clean(text: str, limit: int = LIMIT) -> str:
    """`text` without control and format characters, which could change what a terminal shows."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "?" for character in text)


def shown_file(filename: str) -> str:
    """A file: relative to where it is installed, or else to the working directory if that is
    shorter."""
    installed = installed_path(filename)
    if installed is not None:
        return clean(installed)
    try:
        relative = os.path.relpath(filename)
    except (ValueError, OSError):  # another drive; a working directory that was deleted
        relative = filename
    return clean(min(filename, relative, key=len) if os.path.isabs(filename) else filename)


def shown_line(code: CodeType, lasti: int) -> str:
    """An instruction as "file:line in function"."""
    line = Origin(code, lasti).lineno
    return f"{shown_file(code.co_filename)}:{line} in {clean(code.co_qualname)}"


class LineTexts:
    """Instructions as text, each formatted once: tasks of one kind wait at one line."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[CodeType, int, str]] = {}

    def of(self, code: CodeType, lasti: int) -> str:
        """The text of an instruction."""
        # The bytecode lies inside the code object, so two live instructions have two sums.
        key = id(code) + lasti
        found = self._known.get(key)
        if found is None or found[0] is not code or found[1] != lasti:
            found = self._known[key] = (code, lasti, shown_line(code, lasti))
        return found[2]
