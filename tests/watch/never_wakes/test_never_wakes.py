"""Each kind of dead task is found, and no live one is accused, on asyncio's loop and on uvloop."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handfast._watch.never_wakes import NeverWaking, find_never_waking, search
from handfast._watch.never_wakes.alone import alone
from tests.conftest import MEASURED
from tests.watch.never_wakes.every_kind import ENOUGH, LOOPS
from tests.watch.never_wakes.tasks import ALIVE, DEAD, World, get, wait

ROOT = Path(__file__).parents[3]
Found = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def found() -> Found:
    """What is found, by loop and kind."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.watch.never_wakes.every_kind"],
        cwd=ROOT,
        env={**os.environ, **MEASURED},
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    by_loop: Found = json.loads(child.stdout)
    return by_loop


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", DEAD)
def test_a_dead_task_is_found(name: str, loop: str, found: Found) -> None:
    result = found[loop][name]
    assert sorted(result["dead"]) == list(range(result["tasks"]))
    assert not result["not_checked"]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", ALIVE)
def test_a_live_task_is_not_accused(name: str, loop: str, found: Found) -> None:
    result = found[loop][name]
    assert (result["dead"], result["not_checked"]) == ([], [])


def test_what_the_budget_does_not_allow_is_not_checked() -> None:
    async def start() -> NeverWaking:
        world = World()
        queues: list[asyncio.Queue[int]] = [asyncio.Queue() for _ in range(60)]
        tasks = world.start(*map(get, queues))
        await asyncio.sleep(0)
        groups = [(number, task, 10) for number, task in enumerate(tasks)]
        return await asyncio.to_thread(find_never_waking, groups, 0.0)

    found = asyncio.run(start())
    assert found.dead == []
    assert found.not_checked == [
        "whether 600 waiting tasks can wake was not checked: it takes too long"
    ]


def test_a_task_with_too_many_holders_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_MOST_OBJECTS", 20)

    async def start() -> NeverWaking:
        world = World()
        event = asyncio.Event()
        tasks = world.start(*(wait(event) for _ in range(30)))
        await asyncio.sleep(0)
        return await asyncio.to_thread(find_never_waking, [("all", tasks[0], 30)], ENOUGH)

    assert asyncio.run(start()).not_checked != []


def test_a_free_threaded_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    (sentence,) = find_never_waking([]).not_checked
    assert "free-threaded" in sentence


def test_the_collector_and_the_switch_interval_are_restored() -> None:
    before = sys.getswitchinterval(), gc.isenabled()
    with pytest.raises(ZeroDivisionError), alone(0.5):
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert (sys.getswitchinterval(), gc.isenabled()) == before
