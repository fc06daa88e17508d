"""What the tests of the watch share: a private folder for sockets, and no agent after a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from handfast._watch.agent import agent
from handfast._watch.recording import event_loops, task_creation
from tests.support.runtime_folder import runtime_folder
from tests.support.stepping import loop_kinds, new_loop

__all__ = ["runtime_folder"]


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook alone: tasks know their places, without an agent."""
    task_creation.switch_on()
    event_loops.watch_loops()
    yield
    event_loops.stop_watching_loops()
    task_creation.switch_off()


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    agent.stop()
    assert not task_creation.is_on()


@pytest.fixture(params=["stock", *(["uvloop"] if "uvloop" in loop_kinds() else [])])
def new_runner(request: pytest.FixtureRequest) -> Callable[[], asyncio.Runner]:
    """Makes a runner with asyncio's own loop, and one with uvloop's."""
    new_loop(request.param).close()  # imports uvloop
    return lambda: asyncio.Runner(loop_factory=lambda: new_loop(request.param))
