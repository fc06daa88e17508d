"""Runs Python in a process of its own, where what we measure finds nothing warmed up or left over.

The child imports the same holdfast as this process does, installed or not, and may use .pyc files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The finished child; its stderr is shown if it fails."""
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    # Without .pyc files the child would compile our modules, but not those of the standard library.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    spec = find_spec("holdfast")
    if spec is not None and spec.origin is not None:
        here = str(Path(spec.origin).resolve().parent.parent)
        inherited = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([here, inherited] if inherited else [here])
    return environment
