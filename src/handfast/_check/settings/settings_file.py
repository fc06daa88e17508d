"""Reads the table `[tool.handfast.check]` of a file. An error names the file and the line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handfast._check.source import read_regular

_MOST = 10_000_000
_TABLE = "tool.handfast"
_HEADER = re.compile(r"\s*\[\s*([^]]*?)\s*\]")
_LINE = re.compile(r"at line (\d+)")


class BadSettings(ValueError):
    """A settings file or the command line has an unknown key or code, or a wrong value."""


@dataclass(frozen=True, slots=True)
class SettingsTable:
    """The values of a table; `path` is the file, or the option of the command line."""

    values: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
    text: str = ""

    def error(self, message: str, key: str = "", word: str = "") -> BadSettings:
        """Return an error about a key, or about a word in its value."""
        line = f":{_line_of(self.text, key, word)}" if self.text else ""
        return BadSettings(f"{self.path}{line}: {message}")


def read_table(path: str) -> SettingsTable | None:
    """Return the table in a pyproject.toml; None if there is no such file, or it has none."""
    try:
        content = read_regular(path, _MOST)
    except PermissionError as error:
        # Its settings would silently not apply.
        raise BadSettings(f"{path} cannot be read: {error.strerror}") from None
    except OSError:
        return None
    if b"handfast" not in content:
        return None
    data, text = _parsed(path, content)
    file = SettingsTable({}, path, text)
    tool = data.get("tool", {})
    own = tool.get("handfast", {}) if isinstance(tool, Mapping) else {}
    if not isinstance(own, Mapping):
        raise file.error("tool.handfast is not a table", "handfast")
    table = own.get("check")
    if table is not None and not isinstance(table, Mapping):
        raise file.error("tool.handfast.check is not a table", "check")
    return None if table is None else SettingsTable(table, path, text)


def read_option(value: str) -> tuple[SettingsTable, bool]:
    """Return the table that `--config` gives, and whether it is a file.

    It is a pyproject.toml, a file with the settings alone, or one setting: `pedantic = true`.
    """
    try:
        content = read_regular(value, _MOST)
    except (OSError, ValueError) as error:  # ValueError: a null character
        if "=" not in value:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise BadSettings(f"--config: {value} cannot be read: {why}") from None
        data, _ = _parsed("--config", value.encode())
        return SettingsTable(data, "--config"), False
    data, text = _parsed(value, content)
    if "tool" in data:
        return read_table(value) or SettingsTable({}, value, text), True
    return SettingsTable(data, value, text), True


def _parsed(path: str, content: bytes) -> tuple[dict[str, Any], str]:
    import tomllib  # imported here because most folders have no settings

    try:
        text = content.decode("utf-8")
        return tomllib.loads(text), text
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or nested too deeply
        line = _LINE.search(str(error))
        last = content.rstrip().count(b"\n") + 1 if "end of document" in str(error) else ""
        number = line[1] if line else last
        raise BadSettings(f"{path}{number and f':{number}'} cannot be read: {error}") from None


def _line_of(text: str, key: str, word: str) -> int:
    """Return the line of a key of the table, or of a word in its value. tomllib does not tell."""
    lines = text.split("\n")
    entry = re.compile(rf"(?:^|[{{,])\s*(?:[\w.\"'-]+\.)?[\"']?{re.escape(key)}[\"']?\s*[=.]")
    table, first, found = "", 0, 0
    for number, line in enumerate(lines, 1):
        header = _HEADER.match(line)
        if header is not None:
            table = header[1].replace('"', "").replace(" ", "")
        is_own = table.startswith(_TABLE) or (table == "tool" and key == "handfast") or not table
        if header is not None and is_own:
            first = first or number
        if is_own and key and (entry.search(line) or (header and table.endswith(f".{key}"))):
            found = number
            break
    start = found or first or 1
    below = (number for number in range(start, len(lines) + 1) if word in lines[number - 1])
    return next(below, start) if word else start
