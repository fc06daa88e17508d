"""Programs in a process of their own, and lines that they print."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def program(
    source: str, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run `source`; it is killed at the end of the block."""
    script = folder / "app.py"
    script.write_text(source)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **(environment or {})},
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def line_from(running: subprocess.Popen[str]) -> str:
    """The next line that the program prints."""
    assert running.stdout is not None
    line = running.stdout.readline().strip()
    if not line:
        assert running.stderr is not None
        raise AssertionError(f"it has ended: {running.stderr.read()}")
    return line
