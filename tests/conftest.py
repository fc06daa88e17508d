"""What all tests share: each kind of loop on which the promises must hold."""

from __future__ import annotations

import os

import pytest

from tests.stepping import loop_kinds

# This process may be measured. The programs that tests start are as their users start them, but
# for the ones that are given this.
MEASURED = {name: value for name, value in os.environ.items() if name == "COVERAGE_PROCESS_START"}
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_START", None)


@pytest.fixture(params=loop_kinds())
def kind(request: pytest.FixtureRequest) -> str:
    """The stock loop, one with an eager task factory, uvloop."""
    value: str = request.param
    return value
