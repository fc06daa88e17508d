"""What all tests share: each kind of loop on which the promises must hold."""

from __future__ import annotations

import pytest

from tests.stepping import loop_kinds


@pytest.fixture(params=loop_kinds())
def kind(request: pytest.FixtureRequest) -> str:
    """The stock loop, one with an eager task factory, uvloop."""
    value: str = request.param
    return value
