"""What all tests share: a small heap, and each kind of loop on which the promises must hold."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest

from tests.stepping import loop_kinds

# This process may be measured. The programs that tests start are as their users start them, but
# for the ones that are given this.
MEASURED = {name: value for name, value in os.environ.items() if name == "COVERAGE_PROCESS_START"}
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_START", None)

# Tests write a module, run it, and write it anew within the second. Bytecode knows its source by
# the second and the size, so nobody keeps any of such a module: no program that a test starts,
# and not this process, once all tests have been imported.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def pytest_collection_finish() -> None:
    sys.dont_write_bytecode = True


@pytest.fixture
def small_heap() -> Iterator[None]:
    """The collector looks through what a test makes, and not through all of pytest. For tests that
    collect again and again; not for those that ask who refers to what, or count what is frozen."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(params=loop_kinds())
def kind(request: pytest.FixtureRequest) -> str:
    """The stock loop, one with an eager task factory, uvloop."""
    value: str = request.param
    return value
