"""The interpreter that runs the tests of a project, and what is installed there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_LEAST = [3, 11]
_SECONDS = 20.0
# It has to run on an old Python, too.
_PROBE = """
import json, sys
from importlib.util import find_spec
from importlib.metadata import entry_points
plugin = False
if sys.version_info >= (3, 10):
    plugin = bool(list(entry_points(group="pytest11", name="handfast")))
print(json.dumps([list(sys.version_info[:3]), find_spec("pytest") is not None, plugin]))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python, and why it cannot run the tests; `trouble` is empty if it can."""

    path: str
    found_by: str
    version: str = ""
    has_plugin: bool = False
    trouble: str = ""


def find_interpreter(
    root: Path, named: str | None, environment: Mapping[str, str] = os.environ
) -> Interpreter:
    """The first that exists: `named`, `.venv` or `venv` of the project, `VIRTUAL_ENV`, this one."""
    found = (each for each in _candidates(root, named, environment) if os.path.exists(each[0]))
    # The tests run in another folder. Not `resolve`: an environment is a link to its Python.
    path, found_by = (shutil.which(named) or named, "--python") if named else next(found)
    path = os.path.abspath(path)
    return _probed(path, found_by)


def _candidates(
    root: Path, named: str | None, environment: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    folders = [(str(root / each), each) for each in (".venv", "venv")]
    if active := environment.get("VIRTUAL_ENV"):
        folders.append((active, "VIRTUAL_ENV"))
    inner = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    for folder, found_by in folders:
        yield os.path.join(folder, *inner), found_by
    yield sys.executable, "the Python that runs handfast"


def _probed(path: str, found_by: str) -> Interpreter:
    try:
        answer = subprocess.run(
            [path, "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
        # The last line: a `sitecustomize` may print something, too.
        numbers, has_pytest, has_plugin = json.loads(
            f"\n{answer.stdout.rstrip()}".rpartition("\n")[2]
        )
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Interpreter(path, found_by, trouble=f"it does not run: {_why(error)}")
    version = ".".join(map(str, numbers))
    trouble = "" if has_pytest else "pytest is not installed there"
    if numbers < _LEAST:
        trouble = f"it is Python {version}, and handfast needs 3.11 or newer"
    return Interpreter(path, found_by, version, has_plugin, trouble)


def _why(error: Exception) -> str:
    match error:
        case subprocess.CalledProcessError():
            return f"it ended with status {error.returncode}"
        case subprocess.TimeoutExpired():
            return f"it gave no answer within {_SECONDS:g} s"
        case OSError():
            return str(error.strerror)
    return f"its answer was not understood: {error}"
