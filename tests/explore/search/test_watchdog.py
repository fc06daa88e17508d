"""The limit on the real time of a run, and what it leaves in its thread: nothing."""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from handfast._explore.search.watchdog import TooLong, Watchdog


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    dog = Watchdog(0.2)
    yield dog
    dog.close()


def spin() -> None:
    while True:
        pass


def traced_call() -> int:
    """Call a function under a trace function, as a coverage tool or a debugger does."""
    calls = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal calls
        calls += 1

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        len(str(Watchdog.__doc__))
        (lambda: None)()
    finally:
        sys.settrace(before)
    return calls


def test_a_run_that_is_in_time_leaves_traced_code_alone(watchdog: Watchdog) -> None:
    """On Python 3.11 `pytest --cov --handfast-explore` did not end."""
    with watchdog.limit():
        pass
    assert traced_call() == 1
    assert not watchdog.fired


def test_a_loop_without_an_await_is_cut(watchdog: Watchdog) -> None:
    with pytest.raises(TooLong), watchdog.limit():
        spin()
    assert watchdog.fired
    assert traced_call() == 1


def test_a_call_that_blocks_is_cut_also_by_the_second_of_two(watchdog: Watchdog) -> None:
    second = Watchdog(0.2)
    held = threading.Lock()
    with held, pytest.raises(TooLong), second.limit():
        held.acquire()
    second.close()
    with held, pytest.raises(TooLong), watchdog.limit():
        held.acquire()


def test_a_call_that_blocks_is_cut(watchdog: Watchdog) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(TooLong), watchdog.limit():
        server.accept()
    assert watchdog.fired
    held = threading.Lock()
    with held, pytest.raises(TooLong), watchdog.limit():
        held.acquire()


def test_a_program_that_uses_the_signal_keeps_its_handler() -> None:
    signal.signal(signal.SIGURG, signal.default_int_handler)
    try:
        Watchdog(60).close()
        assert signal.getsignal(signal.SIGURG) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGURG, signal.SIG_DFL)
    dog = Watchdog(60)
    assert signal.getsignal(signal.SIGURG) is not signal.SIG_DFL
    dog.close()
    assert signal.getsignal(signal.SIGURG) == signal.SIG_DFL


def test_it_is_cut_again_if_it_catches_everything(watchdog: Watchdog) -> None:
    caught = 0
    with pytest.raises(TooLong), watchdog.limit():
        try:
            spin()
        except BaseException:
            caught += 1
        spin()
    assert caught == 1
    with watchdog.limit():
        assert not watchdog.fired
    assert traced_call() == 1
