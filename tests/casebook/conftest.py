"""The programs of the reports leave things behind, on purpose. Whenever the collector comes by, those
say so: that is held against no test here, and none of them is left for the tests that follow."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(autouse=True, scope="module")
def nothing_for_the_next() -> Iterator[None]:
    yield
    gc.collect()
