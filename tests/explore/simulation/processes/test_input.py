"""Writing to a child: capacity, back-pressure, and a child that does not listen any more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from asyncio.subprocess import PIPE
from typing import Any

import pytest

from handfast._explore.search.plan import Cancel, Plan, Settings
from handfast._explore.simulation.processes import process_table as table
from handfast._explore.simulation.processes.pipes import CAPACITY
from handfast._explore.simulation.processes.script import (
    Closes,
    Exits,
    Hears,
    HearsAll,
    Says,
    Waits,
    child,
)
from handfast._explore.victim import victim
from tests.explore.all_schedules import schedules
from tests.explore.simulation.processes.event_log import orders, plainly

exec_ = asyncio.create_subprocess_exec


def write(data: bytes) -> Any:
    def act(transport: asyncio.SubprocessTransport) -> None:
        stdin: Any = transport.get_pipe_transport(0)
        stdin.write(b"")
        stdin.write(data)

    return act


def test_a_write_may_come_before_or_after_the_child_closes_its_end() -> None:
    """Before, it is lost without a word; after, or while some of it waits, the pipe is broken."""
    seen = orders(Closes("stdin"), Waits(1), act=write(b"x"), stdin=PIPE, stall=0)
    assert seen == {"made 0:EOF exit lost 0", "made 0:BrokenPipeError exit lost 0"}
    seen = orders(Closes("stdin"), Waits(1), act=write(bytes(CAPACITY + 1)), stdin=PIPE, stall=0)
    assert seen == {"made 0:EOF exit lost 0", "made 0:BrokenPipeError exit lost 0"}


def test_a_child_that_has_broken_its_pipe_by_ending_cannot_be_killed_any_more() -> None:
    def write_and_kill(transport: asyncio.SubprocessTransport) -> None:
        stdin: Any = transport.get_pipe_transport(0)
        stdin.write(b"x")
        if stdin.is_closing():  # it was broken, so the child has ended
            transport.kill()

    seen = orders(Exits(3), act=write_and_kill, stdin=PIPE, stall=0)
    # 255: on Python before 3.13 the kill looks first, and takes the status away.
    assert {order.split()[-1] for order in seen} - {"255"} == {"3"}


def test_what_does_not_fit_goes_out_as_the_child_reads() -> None:
    async def program() -> None:
        child("x", Waits(1), HearsAll(lambda data: str(len(data)).encode()))
        process = await exec_("x", stdin=PIPE, stdout=PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        for size in (CAPACITY, CAPACITY, 5):
            process.stdin.write(bytes(size))
        assert process.stdin.transport.get_write_buffer_size() == CAPACITY + 5
        process.stdin.close()  # what waits is sent all the same
        assert await process.stdout.read() == str(2 * CAPACITY + 5).encode()
        await process.wait()

    plainly(program)
    for seed in range(50):
        plainly(program, Plan(tail="random", seed=seed))


def test_a_transport_that_waits_for_space_learns_that_the_peer_closed() -> None:
    async def program() -> None:
        child("x", Waits(1), Closes("stdin"), Waits(1))
        process = await exec_("x", stdin=PIPE)
        assert process.stdin is not None
        process.stdin.write(bytes(CAPACITY * 3))
        with pytest.raises(BrokenPipeError):
            await process.stdin.drain()
        await process.wait()

    for record in schedules(program, Settings()):
        assert record.verdict is None, record.verdict


def test_the_pipe_may_break_between_the_event_for_free_space_and_the_write() -> None:
    seen: set[str] = set()

    async def program() -> None:
        child("x", Waits(1), Hears(), Closes("stdin"), Waits(1))
        process = await exec_("x", stdin=PIPE)
        assert process.stdin is not None
        process.stdin.write(b"\n" + bytes(2 * CAPACITY))
        with pytest.raises(BrokenPipeError) as broken:
            await process.stdin.drain()
        seen.add(broken.value.strerror or "found out at a poll")
        await process.wait()

    for record in schedules(program, Settings()):
        assert record.verdict is None, record.verdict
    assert seen == {"Broken pipe", "found out at a poll"}


def test_writing_into_a_broken_pipe_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def program() -> None:
        child("x", Closes("stdin"), Waits(1))
        process = await exec_("x", stdin=PIPE)
        assert process.stdin is not None
        await asyncio.sleep(0.5)
        for _ in range(7):
            process.stdin.transport.write(b"x")
        await process.wait()

    with caplog.at_level(logging.WARNING, logger="asyncio"):
        plainly(program)
    assert "pipe closed by peer" in caplog.text


def test_closing_what_is_not_a_pipe_does_nothing() -> None:
    assert orders(Closes("stdout"), Closes("stdin"), Says(b""), Exits(1)) == {"made exit lost 1"}


def test_pausing_before_the_first_byte_holds_it_back() -> None:
    """A handle that the selector has queued is taken back by the pause."""
    seen: set[bytes] = set()

    async def program() -> None:
        child("x", Says(b"a"), Waits(1))
        process = await exec_("x", stdout=PIPE)
        transport: Any = process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        transport.pause_reading()
        transport.pause_reading()
        await asyncio.sleep(0.5)
        assert process.stdout is not None
        seen.add(bytes(process.stdout._buffer))  # type: ignore[attr-defined]
        transport.resume_reading()
        assert await process.stdout.read() == b"a"
        await process.wait()

    for record in schedules(program, Settings(stall=0)):
        assert record.verdict is None, record.verdict
    assert seen == {b"", b"a"}


@pytest.mark.parametrize("threaded", [True, False])
def test_an_exit_is_reported_by_a_thread_and_by_the_selector(
    monkeypatch: pytest.MonkeyPatch, *, threaded: bool
) -> None:
    monkeypatch.setattr(table, "THREADED", threaded)
    assert orders(Exits(3), stdout=PIPE) == {"made 1:EOF exit lost 3", "made exit 1:EOF lost 3"}


@pytest.mark.parametrize("script", [(Waits(),), (Says(b"a"), Exits(3))])
def test_a_cancel_while_a_child_is_started_ends_it_as_asyncio_does(script: Any) -> None:
    async def start() -> None:
        process = await exec_("x", stdin=PIPE, stdout=PIPE)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(asyncio.ensure_future(process.wait()))

    async def program() -> None:
        child("x", *script)
        await victim(start())
        await asyncio.sleep(1)

    instants = plainly(program).instants
    for instant in range(instants):
        plainly(program, Plan(cancels=(Cancel(instant, 1),)))
