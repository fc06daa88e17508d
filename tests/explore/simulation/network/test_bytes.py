"""What one stream can show: bytes in order, each chunking, and the end after the last byte."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from handfast._explore.search.plan import Settings
from tests.explore.all_schedules import Logging, logs

Said = Callable[[asyncio.StreamWriter], Awaitable[None]]


def reading(say: Said) -> Logging:
    """A client that logs each chunk which `say` on the server makes it see, and how it ended."""

    async def program(log: list[str]) -> None:
        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await say(writer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 80)
        reader, writer = await asyncio.open_connection("127.0.0.1", 80)
        try:
            while chunk := await reader.read(100):
                log.append(chunk.decode() + "|")
            log.append("end")
        except ConnectionResetError:
            log.append("reset")
        writer.close()
        server.close()

    return program


async def one_write(writer: asyncio.StreamWriter) -> None:
    writer.write(b"abc")


async def three_writes(writer: asyncio.StreamWriter) -> None:
    for letter in b"abc":
        writer.write(bytes([letter]))


async def two_moments(writer: asyncio.StreamWriter) -> None:
    writer.write(b"a")
    await asyncio.sleep(0)
    writer.write(b"b")


def test_one_write_comes_whole_or_cut_after_its_first_byte_or_before_its_last() -> None:
    assert logs(reading(one_write)) == {"abc|end", "a|bc|end", "ab|c|end"}


def test_several_writes_come_together_or_apart_and_never_in_another_order() -> None:
    assert logs(reading(three_writes)) == {"abc|end", "a|bc|end", "ab|c|end", "a|b|c|end"}
    assert logs(reading(two_moments)) == {"ab|end", "a|b|end"}


@pytest.mark.parametrize("fault", ["reset", "eof"])
def test_a_fault_replaces_what_was_on_its_way_and_only_if_enabled(
    fault: str,
) -> None:
    ends = {"abc|", "a|bc|", "ab|c|", "", "a|", "ab|"}
    whole = {"abc|end", "a|bc|end", "ab|c|end"}
    lost = {end + fault.replace("eof", "end") for end in ends}
    assert logs(reading(one_write), Settings(faults=(fault,))) == whole | lost


def test_nothing_follows_an_early_end() -> None:
    found = logs(reading(two_moments), Settings(faults=("eof",)))
    assert found == {"ab|end", "a|b|end", "a|end", "end"}


def test_a_reset_takes_both_sides() -> None:
    async def program(log: list[str]) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"a")
            try:
                log.append(f"server {await reader.read()!r},")
            except ConnectionResetError:
                log.append("server reset,")
            writer.close()
            gone.set()

        gone = asyncio.Event()
        server = await asyncio.start_server(serve, "127.0.0.1", 80)
        reader, writer = await asyncio.open_connection("127.0.0.1", 80)
        try:
            log.append(f"client {await reader.readexactly(1)!r},")
            writer.close()
        except ConnectionResetError:
            log.append("client reset,")
        await gone.wait()
        server.close()

    assert logs(program, Settings(faults=("reset",), stall=0.0)) == {
        "client b'a',server b'',",
        "client b'a',server reset,",  # it comes in the place of the client's end of file
        "client reset,server reset,",
    }


def test_two_connections_overtake_each_other() -> None:
    async def program(log: list[str]) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            log.append((await reader.read(1)).decode())
            writer.close()

        async def ask(letter: bytes) -> None:
            reader, writer = await asyncio.open_unix_connection("/test/socket")
            writer.write(letter)
            await reader.read()
            writer.close()

        server = await asyncio.start_unix_server(serve, "/test/socket")
        await asyncio.gather(ask(b"x"), ask(b"y"))
        server.close()

    assert logs(program, Settings(stall=0.0)) == {"xy", "yx"}
