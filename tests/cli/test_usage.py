"""Output that cannot be written is one message, or none, and no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from handfast.cli.usage import note, out, usage_error


class Broken:
    """A stream that cannot be written."""

    encoding = None

    def __init__(self, error: OSError) -> None:
        self.error = error
        self.handle = os.open(os.devnull, os.O_RDONLY)

    def write(self, _: str) -> None:
        raise self.error

    def fileno(self) -> int:
        return self.handle


@pytest.fixture
def full() -> Iterator[Broken]:
    stream = Broken(OSError(28, "No space left on device"))
    yield stream
    os.close(stream.handle)


@pytest.fixture
def closed_pipe() -> Iterator[Broken]:
    stream = Broken(BrokenPipeError())
    yield stream
    os.close(stream.handle)


def test_a_full_disk_is_a_message_and_what_is_left_goes_nowhere(
    full: Broken, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(SystemExit) as left:
        out("text")
    assert left.value.code == 2
    assert "standard output cannot be written: No space left" in capsys.readouterr().err
    os.write(full.handle, b"what Python flushes at its exit")


def test_a_reader_that_has_gone_is_no_error(
    closed_pipe: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", closed_pipe)
    out("text")
    os.write(closed_pipe.handle, b"more")


def test_a_closed_output_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit):
        out(b"bytes")
    assert "it is closed" in capsys.readouterr().err


@pytest.mark.parametrize("closed", [True, False])
def test_errors_that_cannot_be_printed_keep_the_status(
    closed: bool, full: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None if closed else full)
    note("lost")
    with pytest.raises(SystemExit) as left:
        usage_error("lost")
    assert left.value.code == 2
