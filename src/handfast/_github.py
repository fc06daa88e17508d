"""Workflow commands of GitHub Actions: an annotation beside a line of a pull request.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Level = Literal["error", "warning", "notice"]


def annotation(level: Level, properties: Mapping[str, object], message: str) -> str:
    """Return the command that shows `message`; `properties` are file, line, title and so on.

    >>> annotation("error", {"file": "a.py", "line": 3}, "50% done")
    '::error file=a.py,line=3::50%25 done'
    """
    listed = ",".join(f"{name}={_escape(str(each), ':,')}" for name, each in properties.items())
    return f"::{level} {listed}::{_escape(message)}"


def _escape(text: str, more: str = "") -> str:
    # The characters of toCommandValue and toCommandProperties in github.com/actions/toolkit,
    # core/src/command.ts. "%" comes first: it is part of what replaces the others.
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text
