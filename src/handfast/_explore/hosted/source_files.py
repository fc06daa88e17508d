"""Which files are tests, and which are what they test."""

from __future__ import annotations

import functools

from handfast._code_owner import is_program


@functools.cache
def is_test_file(filename: str) -> bool:
    """Whether a file is a test, a conftest, or in a folder of tests; not if it is installed."""
    if not is_program(filename):
        return False
    *folders, name = filename.replace("\\", "/").split("/")
    in_folder = any(folder in ("test", "tests", "testing") for folder in folders)
    return in_folder or name.startswith(("test_", "conftest.")) or name.endswith("_test.py")
