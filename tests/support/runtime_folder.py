"""A fixture: an empty `$XDG_RUNTIME_DIR`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from handfast._watch.connection import socket_folder


@pytest.fixture
def runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty `$XDG_RUNTIME_DIR`, and no other folder.

    The path of a socket has to be short, and that of `tmp_path` may not be: with nox it begins with
    that of the project.
    """
    place = "/tmp" if os.name == "posix" else None
    with tempfile.TemporaryDirectory(prefix="hf-", dir=place) as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setattr(socket_folder, "_elsewhere", list)
        yield Path(folder)
