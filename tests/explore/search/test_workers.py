"""Several processes: the same records in the same order, errors are passed on, no process is left."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import Program
from handfast._explore.search.strategies import STRATEGIES
from handfast._explore.search.workers import (
    InProcess,
    MultiProcess,
    WorkersNeedImport,
    _work,
    make_workers,
)
from handfast.explore import Uncontrolled, explore
from tests.explore.search import planted_bugs as planted

PLANS = [Plan(tail="random", seed=seed, observe=True) for seed in range(7)]


@contextmanager
def another_thread() -> Iterator[None]:
    """With other threads about nothing is forked."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture(autouse=True)
def nobody_stays_behind() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.fixture
def no_other_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the test runner has about, so that these fork."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


def records(program: Program, workers: int, plans: list[Plan]) -> list[Any]:
    hands = make_workers(program, None, workers)
    try:
        return list(hands.run(plans, Settings()))
    finally:
        hands.close()


def test_one_worker_is_this_process() -> None:
    assert isinstance(make_workers(planted.two_answers_each, None, 1), InProcess)


@pytest.mark.usefixtures("no_other_thread")
@pytest.mark.parametrize("workers", [2, 3])
def test_the_records_come_in_the_order_of_the_plans(workers: int) -> None:
    alone = records(planted.two_answers_each, 1, PLANS)
    assert records(planted.two_answers_each, workers, PLANS) == alone


@pytest.mark.usefixtures("no_other_thread")
def test_fewer_plans_than_workers_are_enough() -> None:
    assert len(records(planted.two_answers_each, 3, PLANS[:1])) == 1


def test_workers_that_are_spawned_give_the_same_records() -> None:
    with another_thread():
        spawned = records(planted.two_answers_each, 2, PLANS)
    assert spawned == records(planted.two_answers_each, 1, PLANS)


@pytest.mark.usefixtures("no_other_thread")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_number_of_workers_does_not_change_the_finding(strategy: str) -> None:
    def finding_of(workers: int) -> tuple[Any, ...]:
        result = explore(
            planted.between_two_answers, strategy=strategy, workers=workers, seed=5, stall=0.0
        )
        found = result.counterexample
        return result.schedules, result.bound, found and found.token, str(result.coverage)

    assert finding_of(1) == finding_of(2) == finding_of(3)
    assert finding_of(1)[2] is not None


_REDUCED = """
from handfast.explore import explore
from tests.explore.search.planted_bugs import two_answers_each

if __name__ == "__main__":
    for workers in (1, 2):
        print(explore(two_answers_each, strategy="states", workers=workers, schedules=500).schedules)
"""


def test_the_reduced_search_takes_the_same_schedules_with_any_number_of_workers(
    tmp_path: Path,
) -> None:
    # In a process of its own: a state includes globals, and those of this process, but not of
    # a spawned worker, have what other tests did to them.
    script = tmp_path / "reduced.py"
    script.write_text(_REDUCED)
    printed = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert len(printed) == 2
    assert printed[0] == printed[1]


@pytest.mark.usefixtures("no_other_thread")
def test_a_forked_worker_takes_along_what_cannot_be_imported() -> None:
    async def local() -> None:
        await planted.two_answers_each()

    assert len(records(local, 2, PLANS)) == len(PLANS)


def test_what_cannot_be_imported_is_refused_where_nothing_is_forked() -> None:
    async def local() -> None: ...

    with another_thread(), pytest.raises(WorkersNeedImport, match="use workers=1"):
        make_workers(local, None, 2)


@pytest.mark.usefixtures("no_other_thread")
def test_what_is_refused_in_a_worker_is_refused_here() -> None:
    with pytest.raises(Uncontrolled) as refused:
        explore(planted.refused, workers=2)
    assert refused.value.name == "loop.add_reader"
    assert "real_io=True" in str(refused.value)


@pytest.mark.usefixtures("no_other_thread")
def test_an_error_that_cannot_be_pickled_arrives_as_text() -> None:
    program: Any = planted.not_async
    with pytest.raises(RuntimeError, match="Unpicklable: 1 and 2"):
        records(program, 2, PLANS)


@pytest.mark.usefixtures("no_other_thread")
def test_a_program_that_ends_its_process_is_an_error_that_says_so() -> None:
    with pytest.raises(RuntimeError, match=r"worker 0 .* \(exit code -9\).* workers=1"):
        records(planted.ends_its_process, 2, PLANS)


@pytest.mark.usefixtures("no_other_thread")
def test_a_verdict_arrives_without_its_exception() -> None:
    (record,) = records(planted.fails_at_once, 2, PLANS[:1])
    assert record.verdict.error is None
    assert record.verdict.message.endswith("LookupError: planted")


@pytest.mark.usefixtures("no_other_thread")
def test_a_worker_that_does_not_end_is_killed() -> None:
    hands = MultiProcess(planted.two_answers_each, None, 1)
    worker: Any = hands._processes[0]
    waited: list[float | None] = []
    join: Callable[..., None] = worker.join

    def impatient(timeout: float | None = None) -> None:
        waited.append(timeout)
        if timeout is None:
            join()

    pipe = hands._pipes.pop()  # it never hears the end
    worker.join = impatient
    hands.close()
    assert waited[-1] is None
    assert worker.exitcode == -signal.SIGKILL
    pipe.close()


class _Pipe:
    """The end of a pipe that a worker holds, with what comes in written down beforehand."""

    def __init__(self, *shares: list[Plan]) -> None:
        self.shares = list(shares)
        self.sent: list[Any] = []

    def recv(self) -> tuple[list[Plan], Settings]:
        if not self.shares:
            raise EOFError
        return self.shares.pop(0), Settings()

    def send(self, answer: Any) -> None:
        self.sent.append(answer)


def work(program: Any, *shares: list[Plan]) -> list[Any]:
    pipe: Any = _Pipe(*shares)
    before = signal.getsignal(signal.SIGINT)
    try:
        _work(pipe, program, None)
    finally:
        signal.signal(signal.SIGINT, before)
    answers: list[Any] = pipe.sent
    return answers


def test_a_worker_answers_each_share_until_the_end_of_the_pipe() -> None:
    first, second = work(planted.two_answers_each, PLANS[:2], PLANS[2:])
    assert [record.plan for record in first + second] == PLANS


def test_a_worker_answers_with_the_error() -> None:
    (answer,) = work(planted.refused, PLANS)
    assert isinstance(answer, Uncontrolled)
    (words,) = work(planted.not_async, PLANS)
    assert str(words) == "Unpicklable: 1 and 2"
