"""A folder in which files are checked is a repository of its own: the one that the tests may run in
could ignore it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
