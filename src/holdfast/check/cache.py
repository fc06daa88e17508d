"""What was found last time. A result is known by all that it came from: the content of the file, its
place, the settings, this version of holdfast, and the content of the other files that were asked.

One file of JSON: what is read from a folder that others can write to must not be able to run
anything. It is replaced as a whole, so that those who read meanwhile see the old or the new.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from typing import Any

from holdfast.check.facts import Facts, digest
from holdfast.check.finding import Edit, Finding, Fix, Place, Related
from holdfast.check.report import Trouble
from holdfast.check.result import Result

__all__ = ["FOLDER", "Cache", "tool_key"]

FOLDER = ".holdfast_cache"
_KEPT_DAYS = 14
_IGNORE = "# Made by holdfast.\n*\n"
_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of holdfast: it can be removed at any time.\n"
)


def tool_key() -> str:
    """Which holdfast this is: its files, and the Python whose parser it uses."""
    here = os.path.dirname(__file__)
    parts = [f"{sys.version_info[:3]}".encode()]
    for folder, _, names in os.walk(here):
        for name in sorted(names):
            if name.endswith(".py"):
                stat = os.stat(os.path.join(folder, name))
                parts.append(f"{folder}/{name}:{stat.st_size}:{stat.st_mtime_ns}".encode())
    return digest(*sorted(parts))


class Cache:
    """The results of earlier runs. `folder` None: nothing is known, and nothing kept."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._tool = tool_key() if folder else ""
        self._path = os.path.join(folder, "check.json") if folder else ""
        self._today = int(time.time() // 86_400)
        self._changed = False
        data = self._load()
        self._facts: dict[str, list[Any]] = data["facts"]
        self._results: dict[str, list[Any]] = data["results"]

    def _load(self) -> dict[str, dict[str, list[Any]]]:
        empty: dict[str, dict[str, list[Any]]] = {"facts": {}, "results": {}}
        if not self._folder:
            return empty
        try:
            with open(self._path, "rb") as file:
                data = json.loads(file.read())
            if data["tool"] != self._tool:
                return empty
            if not isinstance(data["facts"], dict) or not isinstance(data["results"], dict):
                return empty
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return empty  # not there, of another version, or broken: as if there were none
        return {"facts": data["facts"], "results": data["results"]}

    def facts(self, key: str) -> Facts | None:
        """What the content of this digest says."""
        try:
            _, of_interest, ended = self._used(self._facts, key)
            return Facts(bool(of_interest), tuple(ended))
        except (KeyError, TypeError, ValueError):
            return None

    def keep_facts(self, key: str, facts: Facts) -> None:
        self._facts[key] = [self._today, int(facts.of_interest), list(facts.ended)]
        self._changed = True

    def result(self, key: str) -> Result | None:
        """What was found under this key. Whether that still counts, the caller has to see."""
        try:
            _, data = self._used(self._results, key)
            return _result(data)
        except (KeyError, TypeError, ValueError):
            return None

    def keep_result(self, key: str, result: Result) -> None:
        self._results[key] = [self._today, _plain(result)]
        self._changed = True

    def _used(self, table: dict[str, list[Any]], key: str) -> list[Any]:
        entry = table[key]
        if entry[0] != self._today:
            entry[0] = self._today
            self._changed = True
        return entry

    def save(self) -> None:
        """Write it down, if there is anything new. A cache that cannot be written is no error."""
        if not self._folder or not self._changed:
            return
        try:
            self._prepare(self._folder)
            self._replace(self._folder)
        except OSError:
            pass

    def _prepare(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        for name, text in ((".gitignore", _IGNORE), ("CACHEDIR.TAG", _TAG)):
            path = os.path.join(folder, name)
            if not os.path.exists(path):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)

    def _replace(self, folder: str) -> None:
        oldest = self._today - _KEPT_DAYS
        data: dict[str, Any] = {"tool": self._tool}
        for name, table in (("facts", self._facts), ("results", self._results)):
            data[name] = {key: entry for key, entry in table.items() if _day(entry) >= oldest}
        import tempfile  # only who has something new to write pays for it

        handle, beside = tempfile.mkstemp(dir=folder, prefix=".check.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(data, separators=(",", ":")))
            os.replace(beside, self._path)
        except BaseException:
            os.unlink(beside)
            raise


def _day(entry: Any) -> int:
    day = entry[0] if isinstance(entry, list) and entry else 0
    return day if isinstance(day, int) else 0


# --- results as plain data -----------------------------------------------------------------------


def _plain(result: Result) -> dict[str, Any]:
    return asdict(result)


def _result(data: dict[str, Any]) -> Result:
    return Result(
        path=data["path"],
        findings=tuple(map(_finding, data["findings"])),
        broken=tuple(Trouble(**each) for each in data["broken"]),
        asked=dict(data["asked"]),
        ended=dict(data["ended"]),
    )


def _finding(data: dict[str, Any]) -> Finding:
    fix = data["fix"]
    return Finding(
        data["code"],
        data["message"],
        Place(**data["place"]),
        tuple(Related(Place(**each["place"]), each["message"]) for each in data["related"]),
        None if fix is None else _fix(fix),
        data["pedantic"],
        data["show"],
    )


def _fix(data: dict[str, Any]) -> Fix:
    edits = tuple(Edit(Place(**each["place"]), each["text"]) for each in data["edits"])
    return Fix(data["message"], edits, data["safe"])
