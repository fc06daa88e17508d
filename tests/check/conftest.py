"""Makes the folder of a test look like a project of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
