"""What a program leaves behind of its children is found, with the line that started them."""

from __future__ import annotations

import asyncio
import gc
import os
from asyncio.subprocess import PIPE
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import handfast
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast._explore.simulation.processes.script import Exits, Forks, Waits, child
from handfast._runtime.process import launch as launching
from tests.explore.simulation.processes.event_log import Looking

exec_ = asyncio.create_subprocess_exec


def found(program: Callable[[], Coroutine[Any, Any, object]]) -> tuple[str, str, tuple[str, ...]]:
    loop = Looking()
    run(program, Plan(), Settings(), loop=loop)
    assert loop.found is not None
    return loop.found


async def leave_running() -> None:
    child("server", Waits())
    await exec_("server")


def test_a_child_that_still_runs() -> None:
    code, message, lines = found(leave_running)
    assert code == "HF701"
    assert message == "server is still running after the program ended"
    line = leave_running.__code__.co_firstlineno + 2
    assert lines == (f"server started at {os.path.relpath(__file__)}:{line} in leave_running",)


def test_several_children_that_still_run() -> None:
    async def program() -> None:
        await leave_running()
        await leave_running()

    assert found(program)[1].startswith("server, server are")


def test_a_child_whose_exit_is_not_awaited() -> None:
    async def program() -> None:
        child("player", Waits())
        (await exec_("player")).kill()

    code, message, lines = found(program)
    assert code == "HF702"
    assert "no task waits for it" in message
    assert len(lines) == 1


def test_a_grandchild_that_lives_on() -> None:
    async def program() -> None:
        child("sh", Forks(Waits()), Exits())
        await (await exec_("sh")).wait()

    code, message, lines = found(program)
    assert code == "HF703"
    assert message.startswith("1 grandchild")
    assert "in test_a_grandchild_that_lives_on" in lines[0]


def test_a_transport_that_was_closed_and_has_not_settled_is_no_finding() -> None:
    async def program() -> None:
        child("x", Waits())
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            asyncio.SubprocessProtocol, "x"
        )
        transport.close()

    loop = Looking()
    run(program, Plan(), Settings(), loop=loop)
    assert loop.found is None


def test_nothing_is_left_of_a_run_without_children() -> None:
    async def program() -> None:
        await asyncio.sleep(1)

    loop = Looking()
    run(program, Plan(), Settings(), loop=loop)
    assert loop.found is None


def test_a_child_of_the_runtime_is_found_as_well() -> None:
    async def program() -> None:
        child("x", Waits())
        process = handfast.Process("x")
        await process.start()
        kept.append(process)

    kept: list[handfast.Process] = []
    code, _, lines = found(program)
    assert code == "HF701"
    assert Path(launching.__file__).name in lines[0]
    with pytest.warns(ResourceWarning, match="dropped without close"):
        kept.clear()
        gc.collect()


def test_a_run_that_was_cut_warns_of_nothing_afterwards() -> None:
    async def program() -> None:
        child("x", Waits())
        process = await exec_("x", stdin=PIPE, stdout=PIPE, stderr=PIPE)
        raise ValueError(process.pid)

    verdict = run(program, Plan(), Settings()).verdict
    assert verdict is not None
    assert verdict.code == "HF443"
