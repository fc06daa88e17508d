"""A2 for readers that are started at once, and the size of a pipe with much output."""

from __future__ import annotations

import asyncio
import fcntl
import sys
import tempfile

import pytest

from handfast._runtime.process.output_pipe import HIGH_WATER, PIPE_SIZE, UNREAD, Pipe
from handfast._runtime.process.process import Process
from handfast.explore import explore
from handfast.scripted import Errs, Exits, child
from tests.runtime.process.test_output_pipe import Transport, on_a_loop, opened, read_all


@pytest.mark.parametrize("spawned", [False, True])
def test_a_reader_that_is_started_at_once_gets_every_byte_in_every_schedule(spawned: bool) -> None:
    """A2: with "keep", whose queue is as short as possible here, and output that comes at any time."""

    async def read(process: Process) -> None:
        assert b"".join([line async for line in process.stderr.lines()]) == b"one\ntwo\n"

    async def program() -> None:
        child("x", Errs(b"one\n"), Errs(b"two\n"), Exits())
        process = Process("x", keep=0)
        process.stderr._limit = 0
        async with process:
            await (asyncio.create_task(read(process)) if spawned else read(process))

    found = explore(program, schedules=100)
    assert found.counterexample is None, found.summary


@on_a_loop
async def test_a_reader_that_is_there_from_the_start_gets_every_byte() -> None:
    """A2: uvloop may hand over two megabytes before the start returns; no one can read before."""
    pipe, transport = Pipe("stderr of a test", "keep", 8), Transport()
    pipe.open(transport, asyncio.get_running_loop(), lambda: None)
    for _ in range(32):
        pipe.feed(b"x" * 65536)
    assert transport.paused
    chunks = pipe.chunks()
    first = await anext(chunks)
    pipe.drain()
    assert transport.paused
    pipe.end(eof=True)
    got, gaps = await read_all(chunks)
    assert (first + b"".join(got), gaps) == (b"x" * 32 * 65536, [])


@on_a_loop
async def test_without_a_reader_the_child_waits_until_the_program_has_had_a_turn() -> None:
    """S1.1: with "keep"."""
    pipe, transport = Pipe("stderr of a test", "keep", 8), Transport()
    pipe.open(transport, asyncio.get_running_loop(), lambda: None)
    pipe.feed(b"x" * HIGH_WATER)
    assert transport.paused
    pipe.drain()
    assert not transport.paused
    pipe.feed(b"x" * UNREAD)
    assert not transport.paused


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can change the size of a pipe")
@on_a_loop
async def test_a_pipe_with_much_output_is_made_larger() -> None:
    async with Process("head", "-c", str(3 * UNREAD), "/dev/zero") as process:
        transport = process.stdout._transport
        assert transport is not None
        file = transport.get_extra_info("pipe")
        assert fcntl.fcntl(file, fcntl.F_GETPIPE_SZ) < PIPE_SIZE
        read, larger = 0, False
        async for chunk in process.stdout.chunks():
            read += len(chunk)
            if read > UNREAD and not larger:  # the child has more to write, so the pipe is open
                larger = fcntl.fcntl(file, fcntl.F_GETPIPE_SZ) == PIPE_SIZE
                assert larger
        assert (read, larger) == (3 * UNREAD, True)


@on_a_loop
async def test_a_pipe_that_cannot_be_made_larger_stays_as_it_is() -> None:
    pipe, transport = opened()
    with tempfile.TemporaryFile() as file:
        transport._extra["pipe"] = file  # type: ignore[attr-defined]
        pipe.feed(b"x" * UNREAD)
    pipe.end(eof=True)
    got, gaps = await read_all(pipe.chunks())
    assert (b"".join(got), gaps) == (b"x" * UNREAD, [])
