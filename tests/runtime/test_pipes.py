"""What is kept of an output, and what a reader of it gets. S1.1, without any process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from holdfast.runtime import pipes
from holdfast.runtime.output_record import GAP, Record
from holdfast.runtime.pipes import HIGH_WATER, Chunks, Lines, Pipe
from tests.runtime.processes import drive, on_each_loop, outcome, turns, until

pytestmark = pytest.mark.usefixtures("small_heap")


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


def opened(keep: int = 65536, *, head_start: bool = False) -> tuple[Pipe, Transport]:
    pipe, transport = Pipe("stdout of a test", keep), Transport()
    pipe.open(transport, asyncio.get_running_loop())
    if not head_start:
        pipe.end_head_start()
    return pipe, transport


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
        record, whole = Record(keep), b""
        for _ in range(dice.randrange(12)):
            piece = dice.randbytes(dice.choice([1, 1, 2, 3, 5, 30, 200]))
            record.add(piece)
            whole += piece
            head, tail = bytes(record.head), bytes(record.tail)
            assert len(head) + len(tail) == min(keep, len(whole))
            assert len(head) + record.dropped + len(tail) == record.total == len(whole)
            assert whole.startswith(head)
            assert whole.endswith(tail)
            offset = dice.randrange(len(whole) + 1)
            since = list(record.since(offset))
            if GAP not in since:
                assert b"".join(since) == whole[offset:]
            else:
                assert since.count(GAP) == 1
                before = since[: since.index(GAP)]
                after = since[since.index(GAP) + 1 :]
                assert whole[offset:].startswith(b"".join(before))
                assert whole.endswith(b"".join(after))


@on_a_loop
async def test_lines_come_one_by_one_with_their_newline() -> None:
    pipe, _ = opened()
    pipe.feed(b"one\ntw")
    pipe.feed(b"o\n\nthr")
    pipe.feed(b"ee")
    pipe.end(eof=True)
    assert [line async for line in pipe.lines()] == [b"one\n", b"two\n", b"\n", b"three"]
    assert (pipe.head, pipe.tail, pipe.dropped, pipe.eof) == (b"one\ntwo\n\nthree", b"", 0, True)
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
    with pytest.raises(ValueError, match="at least 1 byte, not 0"):
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
        assert transport.paused == (n < 5)
    pipe.end(eof=True)
    assert [chunk async for chunk in chunks] == []
    assert [chunk async for chunk in chunks] == []


@on_a_loop
async def test_a_reader_that_comes_late_gets_what_was_kept() -> None:
    pipe, _ = opened(keep=8)
    pipe.feed(b"0123456789abcdef")
    assert [await anext(chunks) for chunks in [pipe.chunks()] * 2] == [b"0123", b"cdef"]
    assert pipe.dropped == 8


@on_a_loop
async def test_the_halves_of_two_lines_are_not_glued_together() -> None:
    pipe, _ = opened(keep=8)
    pipe.feed(b"abcdefgh\nxyz\n1\n")
    pipe.end(eof=True)
    assert [line async for line in pipe.lines()] == [b"abcd", b"z\n", b"1\n"]
    assert pipe.dropped == 7


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
    for leave in ("break", "aclose", "del", "cycle", "exception"):
        pipe, transport = opened(keep=100)
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
    pipe, transport = opened()
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
    never = Pipe("of a child that was never started", 10).lines()
    del never


@pytest.mark.parametrize("keep", [100, 10_000, 30_000, 100_000])
def test_what_is_left_unread_does_not_heap_up(keep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1.1: a reader that comes and goes, and is slower than the child."""
    monkeypatch.setattr(pipes, "HIGH_WATER", 1000)
    monkeypatch.setattr(pipes, "LOW_WATER", 500)
    monkeypatch.setattr(pipes, "LEFTOVER", 8000)

    async def main() -> None:
        pipe, transport = opened(keep)
        number = 0

        def write(count: int) -> None:
            nonlocal number
            pipe.feed(b"".join(b"%09d\n" % n for n in range(number, number + count)))
            number += count

        for _ in range(20):
            for _ in range(40):
                write(70)
            lines = pipe.lines()
            await anext(lines)
            while not transport.paused:
                write(10)
            await lines.aclose()
            assert not transport.paused
            assert pipe._queued <= 8000
            assert sum(map(len, pipe._queue)) == pipe._queued
        pipe.end(eof=True)
        rest = [line async for line in pipe.lines()]
        # In order, none twice, and to the very last.
        whole = [int(line) for line in rest if len(line) == 10]
        assert whole == sorted(set(whole))
        assert rest[-1] == b"%09d\n" % (number - 1)

    drive("stock", main)


@on_a_loop
async def test_whoever_begins_at_once_misses_nothing_that_came_before() -> None:
    pipe, transport = opened(keep=8, head_start=True)
    for _ in range(3):
        pipe.feed(b"x" * (HIGH_WATER // 2))
    assert transport.paused
    chunks = pipe.chunks()
    assert [len(await anext(chunks)) for _ in range(3)] == [HIGH_WATER // 2] * 3
    assert not transport.paused
    pipe.end(eof=True)


@on_a_loop
async def test_a_child_that_nobody_reads_does_not_wait_for_longer() -> None:
    """S1.1."""
    pipe, transport = opened(keep=8, head_start=True)
    pipe.feed(b"x" * HIGH_WATER + b"y")
    assert transport.paused
    await until(lambda: not transport.paused)
    assert pipe._queued == 0
    pipe.feed(b"z" * HIGH_WATER)
    assert not transport.paused
    assert [await anext(chunks) for chunks in [pipe.chunks()] * 2] == [b"xxxx", b"zzzz"]


@on_a_loop
async def test_a_close_that_comes_at_once_ends_the_head_start() -> None:
    pipe, transport = opened(keep=8, head_start=True)
    pipe.feed(b"x" * HIGH_WATER)
    assert transport.paused
    pipe.release()
    assert not transport.paused
    pipe.feed(b"y" * HIGH_WATER)
    pipe.end(eof=True)
    assert [chunk async for chunk in pipe.chunks()] == [b"x" * HIGH_WATER, b"yyyy"]


@on_a_loop
async def test_whoever_comes_and_goes_gets_everything_in_order() -> None:
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
    with pytest.raises(RuntimeError, match=r"already being read by .* born at .*test_pipes.py:\d+"):
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
def test_a_cancelled_reader_that_somebody_keeps_does_not_hold_the_child_up(kind: str) -> None:
    """S1.1: its task is done, and kept, and with it the reader."""

    async def main() -> None:
        pipe, transport = opened()

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
    """S1.2: the reader's side of it."""
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
    assert pipe._queued == HIGH_WATER
    assert await anext(chunks) == b"y" * HIGH_WATER
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
async def test_what_was_under_way_when_the_pipe_ended_paces_nobody() -> None:
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
    pipe.end_head_start()
    assert sum([len(chunk) async for chunk in pipe.chunks()]) == 3 * HIGH_WATER
    assert not transport.paused
