"""The reported programs leak on purpose. The ResourceWarnings about it are ignored in this folder, and
the leaks are collected before the tests of other folders.

A leaked transport of a server that is collected together with it fails in its `__del__` on 3.12 and
newer: the server has no waiters any more (`Server._wakeup` runs twice).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
IGNORED = [
    "ignore::ResourceWarning",
    r"ignore:.*_SelectorTransport\.__del__:pytest.PytestUnraisableExceptionWarning",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            for ignored in IGNORED:
                item.add_marker(pytest.mark.filterwarnings(ignored))


@pytest.fixture(autouse=True, scope="module")
def collect_garbage() -> Iterator[None]:
    yield
    gc.collect()
