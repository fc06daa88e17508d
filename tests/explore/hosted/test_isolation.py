"""Calls in a forked process: what comes back, and what becomes of a fork that does not answer."""

from __future__ import annotations

import os
import pickle
import time

import pytest

from handfast._explore.hosted import isolation
from handfast._explore.hosted.isolation import ForkEnded, in_fork
from handfast._explore.search.deciders import Diverged
from handfast._explore.search.watchdog import TooLong

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


class Strange(Exception):
    """Can be pickled, and not loaded."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one)


def raises(error: BaseException) -> None:
    raise error


def test_the_result_comes_back_and_changes_of_globals_do_not() -> None:
    seen: list[int] = []

    def call() -> list[int]:
        seen.append(1)
        return [*seen, *range(100_000)]

    assert in_fork(call, 60) == [1, *range(100_000)]
    assert seen == []


def test_an_error_comes_back() -> None:
    with pytest.raises(Diverged, match="choice 3 \\(timers\\) has 2 answers, and had 4 before"):
        in_fork(lambda: raises(Diverged(3, "timers", 2, 4)), 60)
    with pytest.raises(RuntimeError, match="Strange: 1"):
        in_fork(lambda: raises(Strange(1, 2)), 60)


def test_a_fork_that_ends_without_an_answer() -> None:
    with pytest.raises(ForkEnded, match="exit code 3"):
        in_fork(lambda: os._exit(3), 60)


def test_a_fork_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[int] = []
    fork = os.fork

    def noting_fork() -> int:
        forks.append(fork())
        return forks[-1]

    monkeypatch.setattr(os, "fork", noting_fork)
    with pytest.raises(TooLong):
        in_fork(lambda: time.sleep(600), 0.05)
    with pytest.raises(ChildProcessError):
        os.waitpid(forks[0], os.WNOHANG)


def test_the_fork_sends_its_answer_and_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, because a fork is not measured."""
    monkeypatch.setattr(os, "_exit", lambda status: raises(SystemExit(status)))
    reads, writes = os.pipe()
    with pytest.raises(SystemExit) as ended:
        isolation._answer(lambda: "answer", writes)
    assert ended.value.code == 0
    assert pickle.loads(os.read(reads, 1000)) == (True, "answer")
    for call in (lambda: raises(KeyError("no")), lambda: raises(Strange(1, 2))):
        returned, error = pickle.loads(isolation._packed(call))
        assert not returned
        assert str(error) in {"'no'", "Strange: 1"}
    os.close(reads)
    os.close(writes)
