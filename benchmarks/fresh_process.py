"""Runs Python in a new process, so that a measurement does not depend on earlier ones.

The child imports the same handfast as this process does, installed or not, and may use .pyc files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Return the finished process; its stderr is shown if it fails."""
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    # Without .pyc files the child would compile handfast, but not the standard library.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    spec = find_spec("handfast")
    if spec is not None and spec.origin is not None:
        here = str(Path(spec.origin).resolve().parent.parent)
        inherited = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([here, inherited] if inherited else [here])
    return environment
