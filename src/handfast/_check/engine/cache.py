"""Results of earlier runs. The key of a result is all that it depends on: the content of the file, its
path, the settings, this version of handfast, and the content of the other modules that it used.

It is JSON and not pickle, and signed with a key of the user, because a repository may come with such
a file: its results would hide findings. The file is replaced as a whole, so that another process
reads the old or the new one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, replace
from hashlib import blake2b
from hmac import compare_digest
from typing import Any

from handfast._check.engine.file_facts import Facts, digest
from handfast._check.finding import Finding, Fix, Related, Span
from handfast._check.report import FileError, FileResult
from handfast._check.source import read_regular

FOLDER = ".handfast_cache"
_KEPT_DAYS = 14
_KEY_BYTES = 32
_MOST = 1_000_000_000
_IGNORE = "# Made by handfast.\n*\n"
_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of handfast: it can be removed at any time.\n"
)


def tool_key() -> str:
    """Return a digest of the files of the checker and of the version of Python."""
    here = os.path.dirname(__file__)
    parts = [f"{sys.version_info[:3]}".encode()]
    for folder, _, names in os.walk(here):
        for name in sorted(names):
            if name.endswith(".py"):
                stat = os.stat(os.path.join(folder, name))
                parts.append(f"{folder}/{name}:{stat.st_size}:{stat.st_mtime_ns}".encode())
    return digest(*sorted(parts))


def user_key() -> bytes:
    """Return the random key of this user, which is created once; empty if it cannot be kept."""
    above = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(above, "handfast", "check.key")
    try:
        if not os.path.exists(path):
            _create_key(path)
        return read_regular(path, _KEY_BYTES)
    except OSError:
        return b""


def _create_key(path: str) -> None:
    import tempfile

    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=os.path.dirname(path))  # for its owner only
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
        os.link(beside, path)  # of two processes at once, the first wins
    except FileExistsError:
        pass
    finally:
        os.unlink(beside)


def signature_of(body: bytes, key: bytes) -> bytes:
    return blake2b(body, key=key).hexdigest().encode()


class Cache:
    """The results of earlier runs. Without a folder, nothing is loaded or saved."""

    def __init__(self, folder: str | None) -> None:
        # A link may lead to files of other programs; a cloned repository may have one.
        if folder and os.path.islink(folder):
            folder = None
        self._key = user_key() if folder else b""
        self._folder = folder if self._key else None
        self._tool = tool_key() if self._folder else ""
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
            signature, _, body = read_regular(self._path, _MOST).partition(b"\n")
            if not compare_digest(signature, signature_of(body, self._key)):
                return empty
            data = json.loads(body)
            if data["tool"] != self._tool:
                return empty
            if not isinstance(data["facts"], dict) or not isinstance(data["results"], dict):
                return empty
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return empty  # missing, of another version, or broken
        return {"facts": data["facts"], "results": data["results"]}

    def facts(self, key: str) -> Facts | None:
        """Return the facts of the content with this digest."""
        try:
            _, of_interest, ended, functions, creations = self._used(self._facts, key)
            return Facts(bool(of_interest), tuple(ended), int(functions), int(creations))
        except (KeyError, TypeError, ValueError):
            return None

    def keep_facts(self, key: str, facts: Facts) -> None:
        self._facts[key] = [
            self._today, int(facts.of_interest), list(facts.ended), facts.functions, facts.creations,
        ]  # fmt: skip
        self._changed = True

    def result(self, key: str) -> FileResult | None:
        """Return the result with this key. The caller checks what it depends on."""
        try:
            _, data = self._used(self._results, key)
            return _result(data)
        except (KeyError, TypeError, ValueError):
            return None

    def keep_result(self, key: str, result: FileResult) -> None:
        if self._folder:
            # Not `asdict` of the whole: it would copy thousands of modules.
            data = {
                "path": result.path,
                "findings": [_plain(each) for each in result.findings],
                "broken": [asdict(each) for each in result.broken],
                "modules": result.modules,
                "ended": result.ended,
            }
            self._results[key] = [self._today, data]
            self._changed = True

    def _used(self, table: dict[str, list[Any]], key: str) -> list[Any]:
        entry = table[key]
        if entry[0] != self._today:
            entry[0] = self._today
            self._changed = True
        return entry

    def save(self) -> None:
        """Write the file if anything is new. A cache that cannot be written is not an error."""
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
            try:
                # "x" follows no link, and changes no file that is there.
                with open(path, "x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                pass
            except OSError:
                os.unlink(path)  # an empty one, on a full disk, would never be written again
                raise

    def _replace(self, folder: str) -> None:
        oldest = self._today - _KEPT_DAYS
        data: dict[str, Any] = {"tool": self._tool}
        for name, table in (("facts", self._facts), ("results", self._results)):
            data[name] = {key: entry for key, entry in table.items() if _day(entry) >= oldest}
        import tempfile  # imported here because a warm run does not need it

        handle, beside = tempfile.mkstemp(dir=folder, prefix=".check.")
        try:
            body = json.dumps(data, separators=(",", ":")).encode()
            with os.fdopen(handle, "wb") as file:
                file.write(signature_of(body, self._key) + b"\n" + body)
            os.replace(beside, self._path)
        except BaseException:
            os.unlink(beside)
            raise


def _day(entry: Any) -> int:
    day = entry[0] if isinstance(entry, list) and entry else 0
    return day if isinstance(day, int) else 0


# --- results from plain data ---------------------------------------------------------------------


def _result(data: dict[str, Any]) -> FileResult:
    return FileResult(
        path=data["path"],
        findings=tuple(map(_finding, data["findings"])),
        broken=tuple(FileError(**each) for each in data["broken"]),
        modules=dict(data["modules"]),
        ended=dict(data["ended"]),
    )


def _plain(finding: Finding) -> dict[str, Any]:
    # Without the edits of its fix: what is written into a file never comes from a cache.
    fix = finding.fix
    return asdict(replace(finding, fix=None if fix is None else replace(fix, edits=())))


def _finding(data: dict[str, Any]) -> Finding:
    fix = data["fix"]
    return Finding(
        data["code"],
        data["message"],
        Span(**data["place"]),
        tuple(Related(Span(**each["place"]), each["message"]) for each in data["related"]),
        None if fix is None else Fix(fix["message"], (), fix["safe"]),
        data["confidence"],
        data["harm"],
        data["cause"],
    )
