"""Invented pids: `os.kill` and its like reach the simulation while a run lasts, never the system with such
a pid, and are themselves again afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from typing import Any

import pytest

from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast._explore.simulation.processes import os_patches as reach
from handfast._explore.simulation.processes.process_table import FIRST_PID
from handfast._explore.simulation.processes.script import Exits, Forks, Says, Waits, child
from handfast._runtime.process import group as process_group
from tests.explore.all_schedules import schedules
from tests.explore.simulation.processes.event_log import orders, plainly

exec_ = asyncio.create_subprocess_exec
NAMES = ("kill", "killpg", "getpgid", "waitpid")


@pytest.fixture(autouse=True)
def the_system_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Every call that reaches the system is looked at; afterwards all are what they were."""

    def guard(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(pid: int, *args: Any) -> Any:
            assert abs(pid) < FIRST_PID, f"{real} got the invented pid {pid}"
            return real(pid, *args)

        return call

    for name in NAMES:
        monkeypatch.setattr(os, name, guard(getattr(os, name)))
    before = [getattr(os, name) for name in NAMES] + [process_group.running_members]
    yield
    assert before == [getattr(os, name) for name in NAMES] + [process_group.running_members]


def test_pids_are_above_any_of_the_system_and_the_same_in_every_run() -> None:
    pids: list[int] = []

    async def program() -> None:
        child("x")
        for _ in range(2):
            process = await exec_("x")
            pids.append(process.pid)
            await process.wait()

    plainly(program)
    plainly(program)
    assert pids == [FIRST_PID, FIRST_PID + 1] * 2
    assert FIRST_PID > 2**22


def test_os_kill_reaches_the_child_and_misses_it_once_it_is_reaped() -> None:
    async def program() -> None:
        child("x", Waits())
        process = await exec_("x")
        os.kill(process.pid, 0)
        os.kill(process.pid, signal.SIGTERM)
        assert await process.wait() == -15
        for number in (0, signal.SIGTERM):
            with pytest.raises(ProcessLookupError):
                os.kill(process.pid, number)
        with pytest.raises(ProcessLookupError):
            process.kill()  # the transport is closed by now

    plainly(program)


def test_a_group_is_the_child_and_what_stayed_with_it() -> None:
    async def program() -> None:
        child("x", Forks(Waits()), Forks(Waits(4), leaves=True), Waits())
        process = await exec_("x", stdout=PIPE, start_new_session=True)
        pid = process.pid
        assert os.getpgid(pid) == os.getpgid(pid + 1) == pid
        assert os.getpgid(pid + 2) == pid + 2
        assert list(process_group.running_members(pid)) == [pid, pid + 1]
        os.killpg(pid, signal.SIGKILL)
        assert list(process_group.running_members(pid)) == []
        began = asyncio.get_running_loop().time()
        # Up to 3.13 `wait` waits for the pipe as well, which the one that left holds (gh-119710).
        assert await process.wait() == -9
        waited = asyncio.get_running_loop().time() - began
        assert waited == (0 if sys.version_info >= (3, 14) else 4)
        assert process.stdout is not None
        assert await process.stdout.read() == b""
        assert asyncio.get_running_loop().time() - began == 4
        with pytest.raises(ProcessLookupError):
            os.kill(-pid, signal.SIGTERM)
        with pytest.raises(ProcessLookupError):
            os.getpgid(pid)

    plainly(program)


def test_without_a_session_of_its_own_it_is_in_the_group_of_the_program() -> None:
    async def program() -> None:
        child("x")
        process = await exec_("x")
        assert os.getpgid(process.pid) == os.getpgrp()
        await process.wait()
        process = await exec_("x", process_group=0)
        assert os.getpgid(process.pid) == process.pid
        await process.wait()

    plainly(program)


def test_real_pids_reach_the_system() -> None:
    async def program() -> None:
        child("x", Waits(1))
        process = await exec_("x")
        os.kill(os.getpid(), 0)
        os.killpg(os.getpgrp(), 0)
        assert os.getpgid(os.getpid()) == os.getpgrp()
        assert os.getpid() in process_group.running_members(os.getpgrp())
        with pytest.raises(ChildProcessError):
            os.waitpid(os.getpid(), os.WNOHANG)
        await process.wait()

    plainly(program)


def test_the_calls_are_put_back_when_a_run_is_cut_in_the_middle() -> None:
    async def program() -> None:
        child("x", Waits())
        await (await exec_("x", stdout=PIPE)).wait()

    verdict = run(program, Plan(), Settings()).verdict
    assert verdict is not None
    assert verdict.code == "HF431"
    assert os.kill.__name__ == "call"  # the guard of this test


def test_a_run_inside_a_run_keeps_to_its_own_children() -> None:
    async def inner() -> None:
        child("x", Waits())
        process = await exec_("x")
        os.kill(process.pid, signal.SIGINT)
        assert await process.wait() == -2

    async def outer() -> None:
        child("x", Waits(1))
        process = await exec_("x")
        plainly(inner)
        os.kill(process.pid, 0)
        assert await process.wait() == 0

    plainly(outer)


def test_a_thread_without_a_loop_means_the_latest_run() -> None:
    async def program() -> None:
        child("x", Waits())
        process = await exec_("x")
        loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        os.kill(process.pid, signal.SIGKILL)
        asyncio._set_running_loop(loop)
        assert await process.wait() == -9

    plainly(program)


def test_leaving_twice_does_no_harm() -> None:
    table: Any = object()
    reach.leave(table)


# --- who reaps ---------------------------------------------------------------------------------


def test_waitpid_says_that_a_child_runs_and_refuses_to_stop_the_loop() -> None:
    async def program() -> None:
        child("x", Waits(1))
        process = await exec_("x")
        assert os.waitpid(process.pid, os.WNOHANG) == (0, 0)
        os.waitpid(process.pid, 0)

    with pytest.raises(Uncontrolled, match="until x ends"):
        run(program, Plan(), Settings())


def test_waitpid_on_a_dying_child_waits_and_asyncio_reports_255() -> None:
    async def program() -> None:
        child("x", Waits())
        process = await exec_("x")
        process.kill()
        pid, status = os.waitpid(process.pid, 0)
        assert (pid, os.waitstatus_to_exitcode(status)) == (process.pid, -9)
        with pytest.raises(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
        assert await process.wait() == 255

    plainly(program)


def test_looking_takes_the_status_away_if_it_comes_between_exit_and_reaper() -> None:
    """CPython #87744: `Popen.poll`, which `terminate` calls before 3.13, may be the first."""
    seen: set[tuple[int | None, int]] = set()

    async def program() -> None:
        child("x", Exits(3))
        process = await exec_("x")
        popen: Any = process._transport.get_extra_info("subprocess")  # type: ignore[attr-defined]
        looked = popen.poll()
        seen.add((looked, await process.wait()))

    for record in schedules(program, Settings()):
        assert record.verdict is None
    # 0 is what Popen says of a child that somebody else has reaped. Since 3.14 asyncio gives it
    # the status in the same callback.
    reaped = 3 if sys.version_info >= (3, 14) else 0
    assert seen == {(None, 3), (3, 255), (reaped, 3)}


def test_closing_the_transport_kills_a_running_child_once() -> None:
    def close(transport: asyncio.SubprocessTransport) -> None:
        transport.close()
        transport.close()

    seen = orders(Says(b"a"), Waits(), act=close, stdout=PIPE, stall=0)
    assert {order.split()[-1] for order in seen} == {"-9"}


def test_terminate_on_the_transport_is_a_term() -> None:
    def terminate(transport: asyncio.SubprocessTransport) -> None:
        assert transport.get_pid() == FIRST_PID
        assert transport.get_returncode() is None
        assert transport.get_pipe_transport(1) is None
        transport.terminate()

    assert orders(Waits(), act=terminate) == {"made exit lost -15"}


def test_a_popen_can_terminate_its_child() -> None:
    async def program() -> None:
        child("x", Waits())
        process = await exec_("x")
        popen: Any = process._transport.get_extra_info("subprocess")  # type: ignore[attr-defined]
        popen.terminate()
        assert await process.wait() == -15
        assert popen.poll() == -15
        popen.kill()  # nobody is there any more

    plainly(program)
