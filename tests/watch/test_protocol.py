"""Frames and answers, and a snapshot as JSON in parts."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from handfast._watch.connection import protocol
from handfast._watch.connection.encode import parts_of, text_of
from handfast._watch.connection.protocol import Deadline, ProtocolError, read_answer, write_answer
from handfast._watch.recording.collect import this_process
from handfast.watch import CreationPlace, Growth, LiveTask, Snapshot

PART = "é" * 400_000
"""800,000 bytes, and no frame ends between two characters of it."""


def sent(parts: list[str]) -> bytes:
    """An answer that has gone through a socket."""
    here, there = socket.socketpair()
    with here, there:

        def write() -> None:
            with suppress(ConnectionError):  # the reader has given up
                write_answer(here, parts, Deadline(60))

        writing = threading.Thread(target=write)
        writing.start()
        try:
            return read_answer(there, Deadline(60))
        finally:
            there.close()
            writing.join()


def test_a_long_answer_is_a_sequence_of_frames() -> None:
    assert sent([PART, "x", PART, PART]).decode() == PART + "x" + PART + PART


def test_an_empty_answer() -> None:
    assert sent([]) == b""


def test_a_reader_takes_no_endless_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_ANSWER", 1000)
    with pytest.raises(ProtocolError, match="more than 1,000 bytes"):
        sent(["x" * 1001])


def test_a_deadline_that_has_passed() -> None:
    with pytest.raises(TimeoutError):
        Deadline(0).left()


def test_the_parts_are_the_json_of_the_snapshot() -> None:
    place = CreationPlace(1, "a.py", 2, "f", "g", 3, 4, ages=(1, 2), growth=Growth(1.5, 3))
    tasks = [LiveTask(number, "name", "coro", 1) for number in range(3)]
    whole = Snapshot(this_process(), 1.0, places=(place,), tasks=tuple(tasks))
    assert "".join(parts_of(whole)) == whole.to_json()
    without = Snapshot(whole.process, 1.0, places=(place,), tasks=(tasks[0],))
    assert "".join(parts_of(without, map(text_of, tasks[1:]))) == whole.to_json()
