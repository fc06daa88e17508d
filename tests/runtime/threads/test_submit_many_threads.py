"""S2.3 and S2.7: many threads submit at once, while somebody closes; and where the registry changes."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

import handfast
from handfast.errors import ScopeClosed
from handfast.types import CloseReport
from tests.runtime.wrapped_loop import ForeignLoop

THREADS = 4
EACH = 25


async def finishes(n: int) -> int:
    if n % 3 == 0:
        await asyncio.sleep(0)
    return n


async def fails(n: int) -> int:
    if n % 2:
        await asyncio.sleep(0)
    raise ValueError(n)


async def waits(n: int) -> int:
    await asyncio.get_running_loop().create_future()
    return n


async def cleans_up(n: int) -> int:
    try:
        await waits(n)
    finally:
        await asyncio.sleep(0)
    return n


WORK: list[Callable[[int], Any]] = [finishes, fails, waits, cleans_up]


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    """As often as can be, so that the threads really get in each other's way."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Submitter(threading.Thread):
    """Submits calls of all kinds, cancels some of them, and keeps every answer that it got.

    Before one of its calls it has somebody else begin the close.
    """

    def __init__(
        self,
        scope: handfast.Scope,
        seed: int,
        begin: threading.Barrier,
        close_at: int = EACH,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self._scope = scope
        self._random = random.Random(seed)
        self._begin = begin
        self._close_at = close_at
        self._close = close
        self.answers: list[tuple[Callable[[int], Any], int, Future[int]]] = []
        self.refused = 0

    def run(self) -> None:
        self._begin.wait()
        for n in range(EACH):
            if n == self._close_at:
                self._close()
            function = self._random.choice(WORK)
            try:
                answer = self._scope.submit(function, n)
            except ScopeClosed:
                self.refused += 1
                continue
            self.answers.append((function, n, answer))
            if self._random.random() < 0.3:
                self._random.choice(self.answers)[2].cancel()


def check(function: Callable[[int], Any], n: int, answer: Future[int]) -> str:
    """The answer is one that this call can have."""
    assert answer.done()
    try:
        value = answer.result(timeout=0)
    except CancelledError:
        return "cancelled"
    except ScopeClosed:
        return "refused"
    except ValueError:
        assert (function, repr(answer.exception())) == (fails, f"ValueError({n})")
        return "failed"
    assert (function, value) == (finishes, n)
    return "finished"


@pytest.mark.parametrize("closer", ["a thread", "the loop"])
@pytest.mark.parametrize("seed", range(8))
def test_every_submitter_gets_an_answer_though_the_scope_closes_meanwhile(
    seed: int, closer: str, kind: str
) -> None:
    """S2.7: N threads x M calls, failing and cancelled ones among them; then nothing is left."""
    chance = random.Random(seed)
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope(on_failure="report")
        reports: list[CloseReport] = []

        def close() -> None:
            if closer == "a thread":
                reports.append(scope.close_from_thread())
            else:
                reports.append(foreign.wait_for(scope.close))

        closing = threading.Thread(target=close)
        begin = threading.Barrier(THREADS)
        submitters = [Submitter(scope, chance.getrandbits(32), begin) for _ in range(THREADS - 1)]
        submitters.append(
            Submitter(scope, chance.getrandbits(32), begin, chance.randrange(EACH), closing.start)
        )
        for submitter in submitters:
            submitter.start()
        for submitter in submitters:
            submitter.join()
        closing.join()
        everything = [entry for each in submitters for entry in each.answers]
        assert futures.wait([answer for *_, answer in everything]).not_done == set()
        outcomes = [check(*entry) for entry in everything]
        assert len(outcomes) + sum(each.refused for each in submitters) == THREADS * EACH
        assert reports[0].clean
        assert len(reports[0].cancelled) <= outcomes.count("cancelled")
        assert (len(scope), scope.tasks, scope.closed) == (0, (), True)
        while foreign.do(lambda: asyncio.all_tasks() - {asyncio.current_task()}):
            pass  # the close itself has one step to go


class Recorded(dict[Any, Any]):
    """A registry that knows from which threads it was changed."""

    def __init__(self) -> None:
        super().__init__()
        self.changed_in: set[threading.Thread] = set()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.changed_in.add(threading.current_thread())
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        self.changed_in.add(threading.current_thread())
        super().__delitem__(key)

    def pop(self, *args: Any) -> Any:
        self.changed_in.add(threading.current_thread())
        return super().pop(*args)

    def copy(self) -> dict[Any, Any]:
        return dict(self)


def test_the_registry_changes_on_the_loops_thread_only(kind: str) -> None:
    """S2.3: submit, cancel, fail, finish and close, all of it from other threads."""
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope(on_failure="report")
        registry = scope._registry.live = Recorded()
        begin = threading.Barrier(THREADS)
        submitters = [Submitter(scope, seed, begin) for seed in range(THREADS)]
        for submitter in submitters:
            submitter.start()
        for submitter in submitters:
            submitter.join()
        scope.close_from_thread()
        assert registry.changed_in == {foreign.thread}
        assert not registry


def test_readers_elsewhere_get_a_snapshot() -> None:
    """S2.3: `for task in scope.tasks` while the loop starts and ends tasks all the time."""
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        over = threading.Event()
        seen: list[int] = []

        def read() -> None:
            while not over.is_set():
                seen.append(sum(1 for task in scope.tasks if task.get_name()) + len(scope))

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(20):
            for answer in [scope.submit(finishes, n) for n in range(100)]:
                answer.result()
        over.set()
        reader.join()
        assert seen
        before = scope.tasks
        scope.submit(waits, 1)
        foreign.turn()
        assert before == ()
        scope.close_from_thread()
