"""What is still open at the end of a program is said with the line where it was made."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from handfast._explore.search.plan import Cancel, Plan, Settings
from handfast._explore.search.run import run
from handfast._explore.verdict.verdict import Verdict
from handfast._explore.victim import victim
from tests.explore.simulation.network.test_real_sockets import echo
from tests.explore.simulation.network.test_servers import hang_up
from tests.explore.simulation.network.test_transports import Noting, connected

Program = Callable[[], Coroutine[Any, Any, object]]


def left_over(program: Program) -> Verdict | None:
    """What is said about the program; and whatever it drops goes without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = run(program, Plan(), Settings())
        gc.collect()
    return record.verdict


def test_a_server_that_still_listens_is_a_finding() -> None:
    async def program() -> None:
        await asyncio.start_server(hang_up, "127.0.0.1", 80)

    found = left_over(program)
    assert found is not None
    assert (found.code, found.message) == (
        "HF741",
        "1 server is still listening after the program ended",
    )
    assert found.where[0].startswith("server 1, created at ")
    assert Path(__file__).name in found.where[0]


def test_a_server_that_a_cancel_has_kept_from_the_program_is_no_finding() -> None:
    async def program() -> None:
        async def start() -> None:
            (await asyncio.start_server(hang_up, "127.0.0.1", 80)).close()
            (await asyncio.start_unix_server(hang_up, "/test.sock")).close()

        ends.add((await victim(start())).cancelled)

    ends: set[bool] = set()
    plain = run(program, Plan(observe=True), Settings(cancel="tasks"))
    for segment in plain.segments:
        plan = Plan(cancels=(Cancel(segment.first, segment.task),))
        assert run(program, plan, Settings(cancel="tasks")).verdict is None
    assert ends == {True, False}


def test_an_open_transport_is_a_finding_on_each_side() -> None:
    async def program() -> None:
        _, _, server = await connected()
        server.close()

    found = left_over(program)
    assert found is not None
    assert (found.code, found.message) == (
        "HF742",
        "2 transports are still open after the program ended",
    )
    assert [line.split(",")[0] for line in found.where] == [
        "the client of connection 1",
        "the server of connection 1",
    ]


def test_a_stream_that_is_dropped_without_being_closed_is_a_finding() -> None:
    async def program() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 80)
        await asyncio.open_connection("127.0.0.1", 80)
        await asyncio.sleep(1)
        server.close()

    found = left_over(program)
    assert found is not None
    assert (found.code, found.message) == (
        "HF742",
        "1 transport is no longer referenced and not closed",
    )
    assert Path(__file__).name in found.where[0]


def test_a_transport_in_a_cycle_is_collected_without_a_warning() -> None:
    async def program() -> None:
        near, far, server = await connected()
        for side in (near, far):
            side.transport.pause_reading()  # nobody but itself holds it any more
            side.transport = None
        gc.collect()
        server.close()

    assert left_over(program) is None


def test_a_stream_that_the_other_side_has_closed_may_be_dropped() -> None:
    async def program() -> None:
        server = await asyncio.start_server(hang_up, "127.0.0.1", 80)
        reader, _ = await asyncio.open_connection("127.0.0.1", 80)
        assert await reader.read() == b""
        server.close()

    assert left_over(program) is None


def test_who_is_closing_is_no_finding() -> None:
    async def program() -> None:
        near, far, server = await connected()
        far.transport.pause_reading()
        near.transport.write(bytes(100_000))
        near.transport.close()  # it cannot: nobody reads
        server.close()

    found = left_over(program)
    assert found is not None
    assert [line.split(",")[0] for line in found.where] == ["the server of connection 1"]


def test_whose_peer_has_closed_is_no_finding() -> None:
    async def program() -> None:
        _, far, server = await connected()
        far.transport.abort()
        server.close()

    assert left_over(program) is None


def test_without_a_network_there_is_nothing_to_say() -> None:
    async def program() -> None:
        await asyncio.sleep(1)

    assert left_over(program) is None


def test_a_connection_without_a_program_line_is_reported_with_an_unknown_line() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Noting, "127.0.0.1", 80)
        # The attempts of happy eyeballs are tasks of asyncio's own.
        options: dict[str, Any] = {"happy_eyeballs_delay": 0.1}
        await loop.create_connection(Noting, "127.0.0.1", 80, **options)
        server.close()

    found = left_over(program)
    assert found is not None
    assert found.where[0] == "the client of connection 1, created at an unknown line"


def test_cancel_during_connect_at_every_step_leaves_nothing_behind() -> None:
    ends = set()

    async def program() -> None:
        async def connect() -> None:
            _, writer = await asyncio.open_connection("localhost", 80)
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 80)
        outcome = await victim(connect())
        ends.add("cancelled" if outcome.cancelled else "finished")
        server.close()

    plain = run(program, Plan(observe=True), Settings(cancel="tasks"))
    assert plain.verdict is None
    moments = [(s.task, at) for s in plain.segments for at in range(s.first, s.last + 1)]
    assert len(moments) > 10
    for task, at in moments:
        plan = Plan(cancels=(Cancel(at, task),))
        assert run(program, plan, Settings(cancel="tasks")).verdict is None, at
    assert ends == {"cancelled", "finished"}
