"""What is kept of an output, and what a reader of it gets. S1.1 and A2, without any process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from handfast._runtime.errors import OutputDropped
from handfast._runtime.process import output_pipe as pipes
from handfast._runtime.process.output_buffer import JOINED, OutputBuffer
from handfast._runtime.process.output_pipe import HIGH_WATER, LOW_WATER, UNREAD, Pipe
from handfast._runtime.process.output_readers import Chunks, Lines
from tests.runtime.process.processes import drive, on_each_loop, outcome, turns


class Transport(asyncio.ReadTransport):
    """A read transport that only notes whether it was paused."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = False

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False


def opened(keep: int = 65536, word: str = "pipe", *, limit: int = UNREAD) -> tuple[Pipe, Transport]:
    pipe, transport = Pipe("stdout of a test", word, keep, limit=limit), Transport()
    pipe.open(transport, asyncio.get_running_loop(), lambda: None)
    pipe.drain()
    return pipe, transport


async def read_all(reader: Chunks) -> tuple[list[bytes], list[int]]:
    """Everything that a reader gets, and the sizes of the gaps."""
    got: list[bytes] = []
    gaps: list[int] = []
    while True:
        try:
            async for piece in reader:
                got += [piece]
        except OutputDropped as error:
            gaps.append(error.dropped)
        else:
            return got, gaps


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def wrapped() -> None:
        drive("stock", test)

    wrapped.__name__ = test.__name__
    wrapped.__doc__ = test.__doc__
    return wrapped


@pytest.mark.parametrize("keep", [0, 1, 2, 3, 7, 64])
def test_the_record_is_the_beginning_the_end_and_a_number(keep: int) -> None:
    """S1.1: against the whole output, for pieces of all sizes."""
    dice = random.Random(keep)
    for _ in range(200):
        record, whole = OutputBuffer(keep), b""
        for _ in range(dice.randrange(12)):
            piece = dice.randbytes(dice.choice([1, 1, 2, 3, 5, 30, 200]))
            record.add(piece)
            whole += piece
            assert record.head == whole[: keep // 2]
            assert record.tail == whole[max(0, len(whole) - (keep - keep // 2)) :]
            assert record.dropped == max(0, len(whole) - keep)
            assert record.total == len(whole)
            assert record.tail_start == len(whole) - len(record.tail)
            if not record.dropped:
                assert record.whole == whole


@on_a_loop
async def test_lines_come_one_by_one_with_their_newline() -> None:
    pipe, _ = opened()
    pipe.feed(b"one\ntw")
    pipe.feed(b"o\n\nthr")
    pipe.feed(b"ee")
    pipe.end(eof=True)
    assert [line async for line in pipe.lines()] == [b"one\n", b"two\n", b"\n", b"three"]
    assert pipe.head == pipe.tail == b"one\ntwo\n\nthree"
    assert (pipe.dropped, pipe.eof) == (0, True)
    assert [line async for line in pipe.lines()] == []


@on_a_loop
async def test_a_long_line_comes_in_pieces_and_nothing_is_lost() -> None:
    """S1.1."""
    dice = random.Random(1)
    for limit in (1, 2, 3, 10, 64):
        pipe, _ = opened(keep=10_000)
        whole = bytes(dice.choice(b"ab\n") for _ in range(500)) + b"x" * 200 + b"\n\xff\x00"
        left = whole
        while left:
            size = dice.randrange(1, 40)
            pipe.feed(left[:size])
            left = left[size:]
        pipe.end(eof=True)
        lines = [line async for line in pipe.lines(limit)]
        assert b"".join(lines) == whole
        for line, following in zip(lines, [*lines[1:], b""], strict=True):
            assert len(line) <= limit
            assert b"\n" not in line[:-1]
            assert line.endswith(b"\n") or len(line) == limit or following == b""


@on_a_loop
async def test_a_limit_must_be_possible() -> None:
    pipe, _ = opened()
    with pytest.raises(ValueError, match="at least 1, not 0"):
        pipe.lines(0)


@on_a_loop
async def test_a_reader_waits_for_what_comes_and_the_child_waits_for_the_reader() -> None:
    pipe, transport = opened(keep=10)
    chunks = pipe.chunks()
    waiting = asyncio.ensure_future(anext(chunks))
    await turns(1)
    pipe.feed(b"a")
    assert await waiting == b"a"
    pieces = [bytes([n]) * (HIGH_WATER // 4) for n in range(8)]
    for n, piece in enumerate(pieces):
        pipe.feed(piece)
        assert transport.paused == (n >= 3)
    for n, piece in enumerate(pieces):
        assert await anext(chunks) == piece
        assert transport.paused == (len(pieces) - 1 - n > LOW_WATER // len(piece))
    pipe.end(eof=True)
    assert [chunk async for chunk in chunks] == []
    assert [chunk async for chunk in chunks] == []


@on_a_loop
async def test_a_reader_gets_every_byte_whenever_it_starts() -> None:
    """A2: the child waits, with or without a reader."""
    pipe, transport = opened(keep=8)
    written = 0
    while not transport.paused:
        pipe.feed(b"%07d\n" % written)
        written += 1
    assert written * 8 == HIGH_WATER
    assert pipe.stalled
    lines = pipe.lines()
    for number in range(written):
        assert await anext(lines) == b"%07d\n" % number
    assert not transport.paused
    assert pipe.dropped == HIGH_WATER - 8


@on_a_loop
async def test_a_reader_that_comes_late_learns_how_much_was_dropped() -> None:
    """A2: with "keep" the child does not wait, and a gap is an error."""
    pipe, transport = opened(keep=8, word="keep", limit=4)
    pipe.feed(b"0123")
    pipe.feed(b"456789abcdef")
    assert not transport.paused
    assert not pipe.stalled
    chunks = pipe.chunks()
    assert await anext(chunks) == b"0123"
    with pytest.raises(OutputDropped, match=r"^8 bytes of stdout of a test were dropped: .*keep"):
        await anext(chunks)
    assert await anext(chunks) == b"cdef"
    pipe.feed(b"g")
    assert await anext(chunks) == b"g"
    assert pipe.dropped == 9


@on_a_loop
async def test_what_is_still_in_the_tail_is_not_missing() -> None:
    for keep in range(20):
        pipe, _ = opened(keep=keep, word="keep", limit=4)
        for piece in (b"0123", b"45", b"67", b"8"):
            pipe.feed(piece)
        pipe.end(eof=True)
        got, gaps = await read_all(pipe.chunks())
        assert sum(map(len, got)) + sum(gaps) == 9
        assert (gaps == []) == (keep - keep // 2 >= 5)


@on_a_loop
async def test_a_torn_line_is_no_line() -> None:
    """A2: both lines that a gap cuts are left out; for the next reader too."""
    for new_reader in (False, True):
        pipe, _ = opened(keep=16, word="keep", limit=4)
        pipe.feed(b"a\nbcd")
        pipe.feed(b"efgh\nxyz\n")
        pipe.feed(b"zzz\n1\n")
        pipe.end(eof=True)
        lines = pipe.lines()
        assert await anext(lines) == b"a\n"
        with pytest.raises(OutputDropped):
            await anext(lines)
        if new_reader:
            lines = pipe.lines()
        assert [line async for line in lines] == [b"zzz\n", b"1\n"]


@on_a_loop
async def test_a_torn_line_may_be_longer_than_the_tail() -> None:
    pipe, _ = opened(keep=4, word="keep", limit=2)
    pipe.feed(b"ab")
    pipe.feed(b"cdefgh")
    lines = pipe.lines()
    with pytest.raises(OutputDropped):
        await anext(lines)
    waiting = asyncio.ensure_future(anext(lines))
    await turns(2)
    pipe.feed(b"still the same line")
    await turns(2)
    assert not waiting.done()
    pipe.feed(b"\nnext\n")
    assert await waiting == b"next\n"


@on_a_loop
async def test_reading_goes_on_where_the_last_reader_stopped() -> None:
    pipe, transport = opened()
    pipe.feed(b"".join(b"%d\n" % n for n in range(10)))
    got = []
    for _ in range(4):
        async for line in pipe.lines():
            got.append(line)
            break
    chunks = pipe.chunks()
    got.append(await anext(chunks))
    await chunks.aclose()
    pipe.feed(b"10\n")
    got.append(await anext(pipe.chunks()))
    assert got == [b"0\n", b"1\n", b"2\n", b"3\n", b"4\n5\n6\n7\n8\n9\n", b"10\n"]
    assert not transport.paused


def _feed_later(pipe: Pipe, data: bytes) -> None:
    asyncio.get_running_loop().call_soon(pipe.feed, data)


@on_a_loop
async def test_break_aclose_and_garbage_collection_let_go() -> None:
    """With "keep": the child does not wait for a reader that has left."""
    for leave in ("break", "aclose", "del", "cycle", "exception"):
        pipe, transport = opened(keep=100, word="keep")
        lines = pipe.lines()
        _feed_later(pipe, b"line\n" * HIGH_WATER)
        assert await anext(lines) == b"line\n"
        pipe.feed(b"more")
        pipe.feed(b"x" * HIGH_WATER)
        assert transport.paused, leave
        if leave == "break":
            async for _ in lines:
                break
            del lines
        elif leave == "aclose":
            await lines.aclose()
            assert [line async for line in lines] == []
        elif leave == "del":
            del lines
        elif leave == "cycle":
            knot: list[object] = [lines]
            knot.append(knot)
            del lines, knot
            gc.collect()
        else:
            with contextlib.suppress(ZeroDivisionError):
                async for _ in lines:
                    raise ZeroDivisionError
            del lines
        assert not transport.paused, leave
        assert await anext(pipe.lines()) == b"line\n"


@on_a_loop
async def test_a_reader_collected_on_another_thread_lets_go_on_the_loop() -> None:
    pipe, transport = opened(word="keep")
    holder = [pipe.lines()]
    _feed_later(pipe, b"line\n" * HIGH_WATER)
    await anext(holder[0])
    pipe.feed(b"x" * HIGH_WATER)
    assert transport.paused
    thread = threading.Thread(target=holder.clear)
    thread.start()
    thread.join()
    assert transport.paused
    await turns(2)
    assert not transport.paused
    assert await anext(pipe.lines()) == b"line\n"


def test_a_reader_that_outlives_its_loop_is_dropped_in_silence() -> None:
    async def main() -> Lines:
        pipe, _ = opened()
        lines = pipe.lines()
        _feed_later(pipe, b"line\n")
        await anext(lines)
        return lines

    lines: Chunks = asyncio.run(main())
    del lines
    never = Pipe("of a child that was never started", "pipe", 10).lines()
    del never


@pytest.mark.parametrize("word", ["pipe", "keep"])
def test_every_byte_is_read_or_counted_in_bounded_memory(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1.1, A2: readers that come and go and are slower than the child; a close at any time."""
    monkeypatch.setattr(pipes, "HIGH_WATER", 40)
    monkeypatch.setattr(pipes, "LOW_WATER", 10)
    monkeypatch.setattr(pipes, "JOINED", 6)

    async def one(seed: int) -> None:
        dice = random.Random(seed)
        pipe, transport = opened(dice.choice([0, 1, 8, 30, 1000]), word, limit=60)
        written, offset, gaps = b"", 0, 0
        reader: Chunks | None = None
        closing = dice.randrange(200)

        async def read(some: Chunks) -> None:
            nonlocal offset, gaps
            try:
                piece = await anext(some)
            except OutputDropped as error:
                offset += error.dropped
                gaps += 1
            else:
                assert written[offset : offset + len(piece)] == piece, seed
                offset += len(piece)

        for step in range(120):
            if step == closing:
                pipe.release()
            match dice.randrange(4):
                case 0 | 1 if not transport.paused:
                    piece = dice.randbytes(dice.choice([1, 1, 3, 20]))
                    pipe.feed(piece)
                    written += piece
                case 2 if offset < len(written):
                    reader = reader or pipe.chunks()
                    await read(reader)
                case 3:
                    reader = None
            assert sum(map(len, pipe._queue)) == pipe._queued <= 60 + 20 + 500
            assert not (transport.paused and (step >= closing or (word == "keep" and not reader)))
            assert not (gaps and word == "pipe" and step < closing), seed
        pipe.end(eof=True)
        reader = reader or pipe.chunks()
        while offset < len(written):
            await read(reader)
        assert offset == len(written), seed
        with pytest.raises(StopAsyncIteration):
            await anext(reader)

    async def main() -> None:
        for seed in range(200):
            await one(seed)

    drive("stock", main)


@on_a_loop
async def test_lines_around_gaps_are_whole() -> None:
    """A2: whatever is dropped, each line that a reader gets is one that was written."""
    for seed in range(100):
        dice = random.Random(seed)
        pipe, _ = opened(dice.choice([10, 40, 200]), "keep", limit=100)
        whole = b"".join(b"<%d%s>\n" % (n, b"." * dice.randrange(12)) for n in range(200))
        left, gaps = whole, 0
        got: list[bytes] = []
        reader = pipe.lines()
        while left:
            for _ in range(dice.randrange(1, 30)):
                size = dice.randrange(1, 25)
                pipe.feed(left[:size])
                left = left[size:]
            try:
                for _ in range(dice.randrange(1, 6)):
                    async with asyncio.timeout(0):
                        got.append(await anext(reader))
            except OutputDropped:
                gaps += 1
                reader = dice.choice([reader, pipe.lines()])
            except TimeoutError:
                pass
        pipe.end(eof=True)
        rest, more = await read_all(reader)
        lines = whole.splitlines(keepends=True)
        numbers = [lines.index(line) for line in got + rest]
        assert numbers == sorted(set(numbers)), seed
        assert len(numbers) == len(lines) or gaps + len(more), seed


@on_a_loop
async def test_tiny_pieces_take_no_more_memory_than_large_ones() -> None:
    pipe, transport = opened()
    while not transport.paused:
        pipe.feed(b"x")
    assert len(pipe._queue) <= 1 + HIGH_WATER // JOINED
    pipe.end(eof=True)
    got, gaps = await read_all(pipe.chunks())
    assert (b"".join(got), gaps) == (b"x" * HIGH_WATER, [])


@on_a_loop
async def test_a_stall_is_reported_when_the_pipe_is_full_and_when_its_reader_leaves() -> None:
    stalls: list[bool] = []
    pipe, transport = Pipe("stdout of a test", "pipe", 0), Transport()
    pipe.open(transport, asyncio.get_running_loop(), lambda: stalls.append(pipe.stalled))
    pipe.feed(b"x" * HIGH_WATER)
    assert stalls == [True]
    chunks = pipe.chunks()
    pipe.feed(b"y" * HIGH_WATER)
    await anext(chunks)
    assert stalls == [True]
    await chunks.aclose()
    assert stalls == [True, True]


@on_a_loop
async def test_a_stream_that_is_no_pipe_cannot_be_read() -> None:
    for word in ("inherit", "null", "stdout"):
        pipe = Pipe("stderr of a test", word, 10)
        pipe.open(None, asyncio.get_running_loop(), lambda: None)
        assert word in repr(pipe)
        assert (pipe.ended, pipe.eof, pipe.head) == (True, False, b"")
        with pytest.raises(RuntimeError, match=f'"{word}" and cannot be read'):
            await anext(pipe.lines())


@on_a_loop
async def test_a_reader_that_comes_and_goes_gets_everything_in_order() -> None:
    """Random feeding, reading and leaving, against what was written."""
    for seed in range(60):
        dice = random.Random(seed)
        pipe, _ = opened(keep=1 << 20)
        written, got = b"", b""
        reader: Chunks | None = None
        for _ in range(60):
            match dice.randrange(4):
                case 0 | 1:
                    piece = dice.choice([b"a\n", b"bcd", b"\n", dice.randbytes(50)])
                    pipe.feed(piece)
                    written += piece
                case 2:
                    reader = reader or dice.choice([pipe.lines(8), pipe.lines(), pipe.chunks()])
                    if len(got) < len(written) and isinstance(reader, Lines):
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(0):
                                got += await anext(reader)
                        await turns(1)  # the task holds the error, and so the reader, until then
                    elif len(got) < len(written):
                        got += await anext(reader)
                case _:
                    reader = None
        reader = None
        pipe.end(eof=True)
        got += b"".join([chunk async for chunk in pipe.chunks()])
        assert got == written, seed


@on_a_loop
async def test_two_readers_at_once_are_refused_by_name() -> None:
    pipe, _ = opened()
    pipe.feed(b"a\nb\n")
    first = pipe.lines()
    second = pipe.chunks()
    assert await anext(first) == b"a\n"
    with pytest.raises(
        RuntimeError, match=rf"already being read by .* created at .*{Path(__file__).name}:\d+"
    ):
        await anext(second)
    await first.aclose()
    assert await anext(second) == b"b\n"
    waiting = asyncio.ensure_future(anext(second))
    await turns(1)
    with pytest.raises(RuntimeError, match="another task is already waiting"):
        await anext(second)
    pipe.feed(b"c")
    assert await waiting == b"c"


@on_each_loop
def test_a_reader_that_is_cancelled_loses_nothing(kind: str) -> None:
    async def main() -> None:
        pipe, _ = opened()
        pipe.feed(b"par")
        lines = pipe.lines()
        for when in range(3):
            waiting = asyncio.ensure_future(anext(lines))
            await turns(1)
            if when == 2:
                # Cancelled in the turn in which the data has come.
                pipe.feed(b"tial\n")
            waiting.cancel()
            assert await outcome(waiting) == "cancelled"
        assert await anext(lines) == b"partial\n"

    drive(kind, main)


@on_each_loop
def test_a_time_out_while_reading_leaves_the_pipe_to_the_next_reader(kind: str) -> None:
    """At once: the task still holds the error, with the frames of the reader that was cancelled."""

    async def main() -> None:
        pipe, _ = opened()
        pipe.feed(b"one\nhal")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                async for line in pipe.lines():
                    assert line == b"one\n"
        pipe.feed(b"f\n")
        assert await anext(pipe.lines()) == b"half\n"

    drive(kind, main)


@on_each_loop
def test_a_cancelled_reader_that_is_kept_does_not_block_the_child(kind: str) -> None:
    """S1.1: its task is done, and kept, and with it the reader."""

    async def main() -> None:
        pipe, transport = opened(word="keep")

        async def read() -> None:
            async for _ in pipe.lines():
                pass

        reader = asyncio.create_task(read())
        await turns(2)
        reader.cancel()
        await asyncio.wait({reader})
        for _ in range(10):
            pipe.feed(b"x" * HIGH_WATER)
        assert not transport.paused
        assert reader.cancelled()

    drive(kind, main)


@on_a_loop
async def test_closing_waits_for_no_reader_and_the_reader_gets_what_is_kept() -> None:
    """S1.2, A2: the reader's side of it."""
    pipe, transport = opened(keep=8)
    chunks = pipe.chunks()
    _feed_later(pipe, b"x" * HIGH_WATER)
    assert await anext(chunks) == b"x" * HIGH_WATER
    pipe.feed(b"y" * HIGH_WATER)
    assert transport.paused
    pipe.release()
    assert not transport.paused
    for _ in range(100):
        pipe.feed(b"z" * HIGH_WATER)
    assert not transport.paused
    assert pipe._queued == UNREAD
    assert await anext(chunks) == b"y" * HIGH_WATER
    for _ in range(UNREAD // HIGH_WATER - 1):
        assert await anext(chunks) == b"z" * HIGH_WATER
    with pytest.raises(OutputDropped, match="was being closed") as caught:
        await anext(chunks)
    assert caught.value.dropped == 101 * HIGH_WATER - UNREAD - 4
    assert await anext(chunks) == b"zzzz"
    waiting = asyncio.ensure_future(anext(chunks))
    await turns(1)
    pipe.feed(b"last")
    assert await waiting == b"last"
    pipe.end(eof=False)
    assert [chunk async for chunk in chunks] == []
    pipe.end(eof=True)
    assert not pipe.eof
    # What the loop had under way when the pipe was given up is kept, and paces nobody.
    pipe.feed(b"l" * HIGH_WATER)
    assert pipe.tail == b"llll"


@on_a_loop
async def test_its_text_is_for_people() -> None:
    pipe, _ = opened(keep=8)
    assert str(pipe) == ""
    pipe.feed("oné\n".encode())
    assert str(pipe) == "oné\n"
    pipe.feed(b"\xff\n")
    assert str(pipe) == "oné\n\N{REPLACEMENT CHARACTER}\n"
    pipe.feed(b"twenty more bytes.\nx\n")
    assert str(pipe) == "oné\n[20 bytes not kept]\n.\nx\n"


@on_a_loop
async def test_end_wakes_a_reader_that_waits() -> None:
    pipe, _ = opened()
    chunks = pipe.chunks()
    waiting = asyncio.ensure_future(outcome(anext(chunks)))
    await turns(1)
    assert "open" in repr(pipe)
    pipe.end(eof=True)
    assert "eof" in repr(pipe)
    assert await waiting == "StopAsyncIteration"


@on_a_loop
async def test_what_was_under_way_when_the_pipe_ended_does_not_pause_the_child() -> None:
    pipe, transport = opened()
    chunks = pipe.chunks()
    _feed_later(pipe, b"x")
    assert await anext(chunks) == b"x"
    pipe.end(eof=False)
    pipe.feed(b"y" * HIGH_WATER)
    assert not transport.paused
    assert [len(chunk) async for chunk in chunks] == [HIGH_WATER]


@on_a_loop
async def test_a_reader_of_a_pipe_that_has_ended_does_not_pace_it() -> None:
    pipe, transport = opened(keep=4 * HIGH_WATER)
    pipe.feed(b"x" * 3 * HIGH_WATER)
    pipe.end(eof=True)
    assert transport.paused
    # The transport is closed by now: it must not be resumed.
    assert sum([len(chunk) async for chunk in pipe.chunks()]) == 3 * HIGH_WATER
    assert transport.paused
