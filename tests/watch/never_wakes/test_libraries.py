"""No idle task of a library is called dead. `python -m wild.never_wakes` checks more libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_idle_aiohttp_is_not_accused_and_dead_tasks_beside_it_are_found() -> None:
    """In a process of its own: a search looks through the whole heap."""
    pytest.importorskip("aiohttp")
    row = subprocess.check_output(
        [sys.executable, "-m", "wild.never_wakes", "aiohttp"], cwd=ROOT, text=True
    )
    _, _, pending, called_dead, dead, _ = row.split("|")
    assert int(pending) >= 4
    assert called_dead.strip() == "none"
    assert dead.strip() == "found"
