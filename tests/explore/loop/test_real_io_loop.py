"""The loop with a real selector: real children and sockets, and steps that can be counted and
cancelled all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from handfast._explore.loop import real_io_loop as real
from handfast._explore.loop.real_io_loop import RealLoop
from handfast._explore.loop.stepping import Aborted, Stepper
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.plan import Cancel, Plan, Record, Settings
from handfast._explore.search.run import run
from handfast._explore.victim import victim

Program = Callable[[], Coroutine[Any, Any, object]]
REAL = Settings(real_io=True)
SWEEP = Settings(real_io=True, cancel="tasks")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its selector loop has no children")


def _verdict(program: Program, settings: Settings = REAL) -> str:
    verdict = run(program, Plan(), settings).verdict
    return f"{verdict.code} {verdict.error_type}".strip() if verdict else ""


def _sweep(program: Program) -> tuple[int, set[str]]:
    """Cancel the victim at each of its instants: how many cancels hit, and what was found."""
    base = run(program, Plan(observe=True), SWEEP)
    assert base.verdict is None
    hits, found = 0, set()
    for segment in base.segments:
        plan = Plan(cancels=(Cancel(segment.first, segment.task),))
        record = run(program, plan, SWEEP)
        hits += record.cancelled
        if record.verdict is not None:
            found.add(record.verdict.code)
    return hits, found


# --- what is real ----------------------------------------------------------------------------


async def _talk() -> None:
    """A child, a connection and a thread, all real, all closed."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(5))
        writer.close()
        await writer.wait_closed()

    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    out, _ = await child.communicate(b"through a pipe")
    assert out == b"through a pipe"
    assert child.returncode == 0
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello")
        assert await reader.read() == b"hello"
        writer.close()
        await writer.wait_closed()
    assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()
    await asyncio.sleep(0.001)


def test_children_connections_and_threads_are_real() -> None:
    record = run(_talk, Plan(), REAL)
    assert record.verdict is None
    assert record.steps > 20


def test_a_unix_server_is_real(tmp_path: os.PathLike[str]) -> None:
    async def program() -> None:
        server = await asyncio.start_unix_server(
            lambda r, w: w.close(), os.path.join(tmp_path, "s")
        )
        server.close()
        await server.wait_closed()

    assert _verdict(program) == ""


def test_a_server_on_two_addresses_is_one_server() -> None:
    async def program() -> None:
        await asyncio.start_server(lambda r, w: w.close(), ["127.0.0.1", "127.0.0.2"], 0)

    verdict = run(program, Plan(), REAL).verdict
    assert verdict is not None
    assert (verdict.code, len(verdict.where)) == ("HF741", 1)


# --- a sweep ---------------------------------------------------------------------------------


def _with_child(*, reaps: bool) -> Program:
    async def talk() -> None:
        child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
        try:
            await child.communicate(b"x" * 10)
        finally:
            if reaps and child.returncode is None:
                child.kill()
                await asyncio.shield(child.wait())

    async def program() -> None:
        await victim(talk())

    return program


def _with_server(*, closes: bool) -> Program:
    async def ask(server: asyncio.Server) -> None:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            await reader.read()
        finally:
            writer.close()

    async def program() -> None:
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
        outcome = await victim(ask(server))
        if closes or outcome.finished:
            server.close()

    return program


def test_a_sweep_finds_the_server_that_a_cancel_leaves_listening() -> None:
    hits, found = _sweep(_with_server(closes=False))
    assert hits > 3
    assert found == {"HF741"}


def test_a_sweep_finds_nothing_where_the_server_is_closed() -> None:
    hits, found = _sweep(_with_server(closes=True))
    assert hits > 3
    assert found == set()


def test_a_sweep_finds_the_child_that_a_cancel_leaves_running() -> None:
    hits, found = _sweep(_with_child(reaps=False))
    assert hits > 3
    assert "HF701" in found


def test_a_sweep_finds_no_child_left_where_it_is_reaped() -> None:
    _, found = _sweep(_with_child(reaps=True))
    assert "HF701" not in found


# --- what is left ----------------------------------------------------------------------------


def test_a_child_that_is_left_running_is_ended_before_the_next_run() -> None:
    pids: list[int] = []
    kept: list[object] = []

    async def program() -> None:
        child = await asyncio.create_subprocess_exec("sleep", "3600")
        pids.append(child.pid)
        kept.append(child)

    assert _verdict(program) == "HF701"
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], signal.SIGKILL)


def test_an_open_connection_is_left_over() -> None:
    kept: list[object] = []

    async def program() -> None:
        server = await asyncio.start_server(lambda r, w: kept.append(w), "127.0.0.1", 0)
        kept.append(await asyncio.open_connection(*server.sockets[0].getsockname()))
        server.close()

    assert _verdict(program) == "HF742"


def test_a_timer_that_is_left_over_is_found_and_one_that_was_cancelled_is_not() -> None:
    async def leaves() -> None:
        asyncio.get_running_loop().call_later(3600, print)

    async def cancels() -> None:
        asyncio.get_running_loop().call_later(3600, print).cancel()
        await asyncio.sleep(0.001)

    assert _verdict(leaves) == "HF721"
    assert _verdict(cancels) == ""


def test_a_task_gets_a_moment_for_what_is_on_its_way_and_no_more() -> None:
    async def program() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.send(b"on its way")
        loop = asyncio.get_running_loop()

        async def receive() -> None:
            with ours, theirs:
                await loop.sock_recv(ours, 100)

        asyncio.create_task(receive())

    async def pending() -> None:
        asyncio.create_task(asyncio.Event().wait())

    async def cleans_up_slowly() -> None:
        async def slow() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.001)

        asyncio.create_task(slow())
        await asyncio.sleep(0)

    assert _verdict(program) == ""
    assert _verdict(pending) == "HF102"
    assert _verdict(cleans_up_slowly) == "HF102"


# --- waiting that never ends -----------------------------------------------------------------


def test_a_program_that_waits_for_nothing_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "_UNKNOWN", 0.01)

    async def program() -> None:
        await asyncio.Event().wait()

    assert _verdict(program) == "HF431"


def test_a_thread_that_the_loop_does_not_know_may_still_wake_it() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        event = asyncio.Event()
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(event.set,))
        loop.call_soon(thread.start)
        await event.wait()
        thread.join()

    assert _verdict(program) == ""


def test_waiting_for_a_silent_peer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "_REGISTERED", 0.01)

    async def program() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with ours, theirs:
            await asyncio.get_running_loop().sock_recv(ours, 1)

    with pytest.raises(Uncontrolled, match="still registered"):
        run(program, Plan(), REAL)


def test_an_invariant_is_checked_after_each_step() -> None:
    count = 0

    def at_most_five() -> bool:
        nonlocal count
        count += 1
        return count <= 5

    record = run(_talk, Plan(), REAL, invariant=at_most_five)
    assert record.verdict is not None
    assert record.verdict.code == "HF442"


def test_closing_twice_is_once() -> None:
    loop = RealLoop()
    loop.prepare(Stepper(REAL, _Plain()))
    loop.close()
    loop.close()
    assert loop.is_closed()


def test_a_run_that_is_aborted_still_ends_what_is_outside() -> None:
    record: Record = run(_talk, Plan(), Settings(real_io=True, step_limit=3))
    assert record.verdict is not None
    assert record.verdict.code == "HF432"
    assert issubclass(Aborted, BaseException)


class _Plain:
    def choose(self, kind: str, options: int, actors: object) -> int:
        return 0
