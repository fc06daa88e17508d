"""A small service with tests that pass and four bugs, each found by a different tool.

Where httpx is installed, there is also a test of httpx, which shows a bug of its connection pool.
The files end in `.txt`: they are copied to a folder of their own, since code inside handfast counts
as handfast's own, and pytest would collect the tests.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

_FILES = ("service.py", "test_service.py")
_WITH_HTTPX = ("test_http.py",)


def write_demo(folder: Path) -> None:
    """Write the service and its tests to a folder."""
    has_httpx = all(map(find_spec, ("httpx", "httpcore")))
    for name in (*_FILES, *(_WITH_HTTPX if has_httpx else ())):
        text = files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
