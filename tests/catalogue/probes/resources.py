"""Probes for HF7xx: what is still there afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

from tests.catalogue.probe import Bench, probe, steps
from tests.catalogue.side_effects import children_reaped, witness

POSIX = os.name == "posix"


@probe("HF701", outside=True, missing=None if POSIX else "signals and named pipes")
async def process_left_running(bench: Bench, snippet: Any) -> str | None:
    assert await snippet.output_of("echo", "hello") == b"hello\n"
    async with witness() as child:
        running = asyncio.create_task(snippet.output_of(*child.command))
        await child.up()
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        return "the child lives on" if await child.alive() else None


@probe("HF702", missing=None if hasattr(os, "waitid") else "os.waitid")
def process_not_reaped(bench: Bench, snippet: Any) -> str | None:
    player = snippet.Player("sleep", "600")
    player.stop()
    try:
        # Waits for the end of the child and leaves the reaping to others.
        os.waitid(os.P_PID, player.process.pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return None
    player.process.wait()
    return "a zombie"


@probe("HF703", outside=True, missing=None if POSIX else "signals and named pipes")
async def grandchild_left_running(bench: Bench, snippet: Any) -> str | None:
    async with witness() as grandchild:
        shell = snippet.Shell()
        await shell.start(grandchild.script)
        await grandchild.up()
        await shell.stop()
        return "the grandchild lives on" if await grandchild.alive() else None


@contextlib.contextmanager
def paused_pipes() -> Iterator[set[Any]]:
    """Every pipe that asyncio has stopped to read because nobody takes what it has read."""
    from asyncio import unix_events  # not there on Windows

    transport = unix_events._UnixReadPipeTransport  # type: ignore[attr-defined]
    pause, resume = transport.pause_reading, transport.resume_reading
    paused: set[Any] = set()

    def pause_reading(self: Any) -> None:
        paused.add(self)
        pause(self)

    def resume_reading(self: Any) -> None:
        paused.discard(self)
        resume(self)

    transport.pause_reading, transport.resume_reading = pause_reading, resume_reading
    try:
        yield paused
    finally:
        transport.pause_reading, transport.resume_reading = pause, resume


@probe("HF704", outside=True, missing=None if POSIX else "the pipes of a Unix loop")
async def pipe_not_drained(bench: Bench, snippet: Any) -> str | None:
    talk = "import sys; sys.stderr.write('x' * (4 << 20)); print('done')"
    stuck = asyncio.Event()

    def look() -> None:
        # A pause with a timer behind it will end by itself.
        timers = [timer for timer in getattr(bench.loop, "_scheduled") if not timer.cancelled()]  # noqa: B009
        if paused and not timers:
            bench.loop.call_soon_threadsafe(stuck.set)

    with paused_pipes() as paused:
        bench.loop.on_idle(look)
        running = asyncio.create_task(snippet.run(sys.executable, "-I", "-S", "-c", talk))
        seeing = asyncio.create_task(stuck.wait())
        await asyncio.wait({running, seeing}, return_when=asyncio.FIRST_COMPLETED)
        bench.loop.on_idle(lambda: None)
        if stuck.is_set():
            await children_reaped_later(running)
            return "the child waits for a reader that does not come"
    seeing.cancel()
    lines, errors = await running
    assert lines == [b"done\n"]
    assert errors.endswith(b"x")
    return None


async def children_reaped_later(running: asyncio.Task[Any]) -> None:
    """Kill the child under the example's hands, and let the example come to its end."""
    reaping = asyncio.create_task(children_reaped(kill=True))
    await asyncio.wait({running, reaping})
    running.result()


@probe("HF711")
def thread_left_running(bench: Bench, snippet: Any) -> str | None:
    entered, gate = threading.Event(), threading.Event()

    def sample() -> None:
        entered.set()
        gate.wait(60)

    sampler = snippet.Sampler(sample)
    assert entered.wait(60)
    join = sampler.thread.join

    def joined() -> None:
        gate.set()
        join()

    sampler.thread.join = joined
    sampler.close()
    left = sampler.thread.is_alive()
    joined()
    return "the thread runs on" if left else None


@probe("HF712", outside=True)
async def executor_left_open(bench: Bench, snippet: Any) -> str | None:
    images = snippet.Images(lambda image: f"small {image}")
    assert await images.resize("image") == "small image"
    await images.close()
    left = [thread for thread in threading.enumerate() if thread.name.startswith("images")]
    images._pool.shutdown()
    return f"{len(left)} thread waits for work" if left else None


@probe("HF713", outside=True)
async def thread_outlives_cancel(bench: Bench, snippet: Any) -> str | None:
    entered, gate = asyncio.Event(), threading.Event()
    written = []

    def write(row: int) -> None:
        written.append(row)
        bench.loop.call_soon_threadsafe(entered.set)
        gate.wait(60)

    exporting = asyncio.create_task(snippet.export(range(3), write))
    await entered.wait()
    exporting.cancel()
    await asyncio.wait({exporting})
    before = len(written)
    gate.set()
    await bench.loop.shutdown_default_executor()
    late = len(written) - before
    return f"{late} rows written after the cancellation" if late else None


@probe("HF721")
async def timer_left_over(bench: Bench, snippet: Any) -> str | None:
    fired: list[bool] = []
    session = snippet.Session(lambda: fired.append(True))
    session.close()
    await asyncio.sleep(600)
    return "it fires on a closed session" if fired else None


@probe("HF731")
async def generator_left_open(bench: Bench, snippet: Any) -> str | None:
    closed = False

    async def rows() -> AsyncIterator[int]:
        nonlocal closed
        try:
            for row in range(10):
                yield row
        finally:
            await asyncio.sleep(0)
            closed = True

    assert await snippet.find(rows, 3) == 3
    return None if closed else "it is still open"


@probe("HF741", outside=True)
async def server_left_open(bench: Bench, snippet: Any) -> str | None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    app = snippet.App()
    await app.start(handle)
    await app.stop()
    try:
        socket.create_connection(app.address, timeout=60).close()
    except ConnectionRefusedError:
        return None
    await steps()
    for thing in gc.get_objects():
        if isinstance(thing, asyncio.Server) and thing.get_loop() is bench.loop:
            thing.close()
    return "it still accepts"


@probe("HF742", outside=True)
async def transport_left_open(bench: Bench, snippet: Any) -> str | None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await reader.read()
        writer.close()
        ended.set()

    ended = asyncio.Event()
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    assert await snippet.ask(host, port, b"question\n") == b"question\n"
    gc.collect()
    unclosed = [w for w in bench.warnings if issubclass(w.category, ResourceWarning)]
    await ended.wait()
    server.close()
    await server.wait_closed()
    return str(unclosed[0].message) if unclosed else None


@probe("HF743")
async def session_left_open(bench: Bench, snippet: Any) -> str | None:
    class Session:
        closed = False

        async def get(self, url: str) -> str:
            if url == "bad":
                raise ConnectionError(url)
            return "page"

        async def close(self) -> None:
            self.closed = True

        async def __aenter__(self) -> Session:
            return self

        async def __aexit__(self, *_: object) -> None:
            await self.close()

    sessions: list[Session] = []

    def open_session() -> Session:
        sessions.append(Session())
        return sessions[-1]

    assert await snippet.fetch(open_session, "good") == "page"
    with contextlib.suppress(ConnectionError):
        await snippet.fetch(open_session, "bad")
    left = sum(not session.closed for session in sessions)
    return f"{left} of {len(sessions)} sessions left open" if left else None


@probe("HF751")
def descriptor_left_open(bench: Bench, snippet: Any) -> str | None:
    def digest(data: bytes) -> int:
        if data == b"bad":
            raise ValueError("no digest")
        return len(data)

    with tempfile.NamedTemporaryFile() as file:
        file.write(b"bad")
        file.flush()
        before = open_descriptors()
        with contextlib.suppress(ValueError):
            snippet.checksum(file.name, digest)
        left = open_descriptors() - before
    for descriptor in left:
        os.close(descriptor)
    return f"{len(left)} descriptor left open" if left else None


def open_descriptors() -> set[int]:
    found = set()
    for descriptor in range(256):
        with contextlib.suppress(OSError):
            os.fstat(descriptor)
            found.add(descriptor)
    return found


@probe("HF761")
async def memory_grows(bench: Bench, snippet: Any) -> str | None:
    calls = snippet.Calls(lambda number, question: None)
    answered = asyncio.create_task(calls.call(0, "question"))
    await steps()
    calls.on_answer(0, "answer")
    assert await answered == "answer"
    for number in range(1, 101):
        with contextlib.suppress(TimeoutError):
            await calls.call(number, "question")
    return f"{len(calls.waiting)} entries stay" if calls.waiting else None
