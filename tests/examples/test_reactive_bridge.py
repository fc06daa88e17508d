"""RxLangGraphBridge: S2.1 to S2.8, with real graphs, real streams and real threads."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
import reactivex
from reactivex import operators as ops
from reactivex.scheduler import NewThreadScheduler
from reactivex.subject import Subject

import handfast
from examples.reactive.bridge import RxLangGraphBridge
from handfast.explore import explore, victim
from tests.bridges.graphs import WORKING, State, Stuck, adds, graph_of, waits
from tests.bridges.recording_observer import RecordingObserver
from tests.runtime.wrapped_loop import ForeignLoop, Watched

ADDING = {"do": "adds", "n": 1}
WAITING = {"do": "waits"}


def bridge_on(foreign: ForeignLoop, graph: Any = WORKING, **options: Any) -> RxLangGraphBridge:
    return foreign.do(lambda: RxLangGraphBridge(graph, **options))


def test_s2_1_a_message_from_any_thread_starts_promptly_on_an_idle_loop() -> None:
    """S2.1: the loop sleeps without a time-out, so it would sleep forever if it were not woken."""
    selector = Watched()
    with ForeignLoop(asyncio.SelectorEventLoop(selector)) as foreign:
        bridge = bridge_on(foreign)
        foreign.turn()
        assert selector.asleep.wait(10)
        assert bridge.submit(ADDING).result(timeout=10)["n"] == 2
        assert bridge.cleanup_tasks().clean


def test_s2_2_asyncio_debug_mode_reports_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S2.2"""
    with ForeignLoop() as foreign, caplog.at_level(logging.DEBUG, logger="asyncio"):
        foreign.loop.slow_callback_duration = 60  # this machine may be busy
        foreign.do(lambda: foreign.loop.set_debug(True))
        caplog.clear()
        bridge = bridge_on(foreign)
        observer: RecordingObserver[Any] = RecordingObserver()
        source = reactivex.of(ADDING, {"do": "fails", "n": 1}, ADDING)
        source.pipe(bridge.runs()).subscribe(observer)
        observer.wait()
        waiting = bridge.submit(WAITING)
        assert bridge.cleanup_tasks().clean
        assert waiting.cancelled()
        assert [record.getMessage() for record in caplog.records] == []


class Recorded(dict[Any, Any]):
    """A registry that notes in which threads it was changed."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[threading.Thread] = set()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.threads.add(threading.current_thread())
        super().__setitem__(key, value)

    def pop(self, *args: Any) -> Any:
        self.threads.add(threading.current_thread())
        return super().pop(*args)


def test_s2_3_the_registry_changes_on_the_loop_and_others_read_a_snapshot() -> None:
    """S2.3"""
    with ForeignLoop() as foreign:
        bridge = bridge_on(foreign)
        registry = bridge._scope._registry.live = Recorded()
        answers = [bridge.submit(WAITING) for _ in range(3)]
        foreign.turn()
        snapshot = bridge.active_tasks
        assert len(snapshot) == 3
        answers[0].cancel()
        bridge.submit(ADDING).result(timeout=10)
        assert bridge.cleanup_tasks().clean
        assert registry.threads == {foreign.thread}
        assert len(snapshot) == 3
        assert bridge.active_tasks == ()


def test_s2_4_a_failed_or_cancelled_run_is_the_outcome_of_its_own_message() -> None:
    """S2.4: the stream and the siblings live on."""

    async def main() -> list[str]:
        bridge = RxLangGraphBridge(WORKING)
        runs = bridge.runs(ordered=True)
        source: Subject[Any] = Subject()
        observer: RecordingObserver[Any] = RecordingObserver()
        source.pipe(runs).subscribe(observer)
        source.on_next(WAITING)
        await asyncio.sleep(0)
        (waiting,) = bridge.active_tasks
        for kind in ("adds", "fails", "adds"):
            source.on_next({"do": kind, "n": 1})
        source.on_completed()
        waiting.cancel()
        await runs.join()
        assert observer.completed
        assert (await bridge.cleanup_tasks_async()).clean
        return [
            "cancelled" if run.cancelled else "failed" if run.failed else "finished"
            for run in observer.outcomes
        ]

    assert asyncio.run(main()) == ["cancelled", "finished", "failed", "finished"]


def test_s2_5_explored_cleaning_up_joins_until_empty_latecomers_included() -> None:
    """S2.5: messages come from threads while the bridge is cleaned up. Everybody is answered, no
    run is left, and what comes after is refused."""

    graph = graph_of(adds)

    async def program() -> None:
        bridge = RxLangGraphBridge(graph)
        answers: list[Future[Any]] = []
        refused = 0

        def emit(message: dict[str, Any]) -> None:
            nonlocal refused
            try:
                answers.append(bridge.submit(message))
            except handfast.errors.ScopeClosed:
                refused += 1

        emitting = [asyncio.create_task(asyncio.to_thread(emit, ADDING)) for _ in range(2)]
        await asyncio.sleep(0)
        await bridge.cleanup_tasks_async()
        assert bridge.active_tasks == ()
        await asyncio.gather(*emitting)
        assert len(answers) + refused == 2
        assert all(answer.done() for answer in answers)
        emit(ADDING)
        assert len(answers) + refused == 3
        assert refused > 0

    assert explore(program, schedules=60).counterexample is None


def test_s2_5_a_cancelled_clean_up_is_complete() -> None:
    """S2.5: cancelling the closer at any step leaves no run."""

    graph = graph_of(waits)

    async def program() -> None:
        bridge = RxLangGraphBridge(graph)
        answer = bridge.submit({"n": 1})
        for _ in range(3):
            await asyncio.sleep(0)
        closer = await victim(bridge.cleanup_tasks_async())
        if answer.done():  # unless it was cancelled before it began
            assert bridge.active_tasks == ()
        else:
            assert closer.cancelled
        await bridge.cleanup_tasks_async()
        assert answer.cancelled()

    assert explore(program, cancel=True, schedules=60).counterexample is None


def test_s2_6_cleaning_up_from_a_thread_is_bounded_and_names_the_stragglers() -> None:
    """S2.6"""
    stuck = Stuck()
    with ForeignLoop() as foreign:
        bridge = bridge_on(foreign, graph_of(stuck))
        bridge.submit({"n": 1})
        assert stuck.begun.wait(10)
        began = time.monotonic()
        report = bridge.cleanup_tasks(timeout=0.1)
        assert time.monotonic() - began < 5
        assert [straggler.name for straggler in report.stragglers] == ["RxLangGraphBridge._run"]
        stuck.gate.set()
        foreign.wait_for(bridge.cleanup_tasks_async)
        assert bridge.active_tasks == ()


def test_s2_6_on_the_loop_the_blocking_form_raises_instead_of_deadlocking() -> None:
    """S2.6"""

    async def main() -> None:
        bridge = RxLangGraphBridge(WORKING)
        with pytest.raises(RuntimeError, match=r"await bridge\.cleanup_tasks_async"):
            bridge.cleanup_tasks()
        assert (await bridge.cleanup_tasks_async()).clean

    asyncio.run(main())


class Sender(threading.Thread):
    """Sends messages of all kinds, cancels some, and keeps every answer."""

    def __init__(self, bridge: RxLangGraphBridge, seed: int, begin: threading.Barrier) -> None:
        super().__init__()
        self._bridge = bridge
        self._random = random.Random(seed)
        self._begin = begin
        self.answers: list[tuple[str, Future[Any]]] = []
        self.refused = 0

    def run(self) -> None:
        self._begin.wait()
        for n in range(15):
            kind = self._random.choice(["adds", "fails", "waits", "cleans_up"])
            try:
                self.answers.append((kind, self._bridge.submit({"do": kind, "n": n})))
            except handfast.errors.ScopeClosed:
                self.refused += 1
            if self._random.random() < 0.3 and self.answers:
                self._random.choice(self.answers)[1].cancel()


def kind_of(answer: Future[Any]) -> str:
    assert answer.done()
    if answer.cancelled():
        return "cancelled"
    error = answer.exception()
    if error is None:
        return "adds"
    return "fails" if isinstance(error, ValueError) else "refused"


@pytest.mark.parametrize("seed", range(3))
def test_s2_7_many_threads_each_get_every_answer_and_nothing_is_left(seed: int) -> None:
    """S2.7: N threads x M submissions, failures and cancels among them, closed in the middle."""
    with ForeignLoop() as foreign:
        bridge = bridge_on(foreign, concurrency=8)
        begin = threading.Barrier(5)
        senders = [Sender(bridge, 10 * seed + n, begin) for n in range(4)]
        for sender in senders:
            sender.start()
        begin.wait()
        if seed:  # otherwise they have all been sent before the end comes
            senders[seed].join()
        else:
            for sender in senders:
                sender.join()
        report = bridge.cleanup_tasks(timeout=10)
        for sender in senders:
            sender.join()
        assert report.stragglers == ()
        assert bridge.active_tasks == ()
        assert all(len(sender.answers) + sender.refused == 15 for sender in senders)
        for kind, answer in (each for sender in senders for each in sender.answers):
            assert kind_of(answer) in {kind, "cancelled", "refused"} - {"waits", "cleans_up"}


@pytest.mark.parametrize("how", ["stopped", "closed"])
def test_s2_8_a_message_to_a_loop_that_is_gone_fails_at_once(how: str) -> None:
    """S2.8: with a clear error; and no coroutine is left that was never awaited."""
    with ForeignLoop() as foreign:
        bridge = bridge_on(foreign)
        foreign.stop() if how == "stopped" else foreign.close()
        with pytest.raises(
            handfast.errors.LoopStopped, match="has stopped and cannot run this call"
        ):
            bridge.submit(ADDING)
        observer: RecordingObserver[Any] = RecordingObserver()
        reactivex.of(ADDING).pipe(bridge.runs()).subscribe(observer)
        assert isinstance(observer.error, handfast.errors.LoopStopped)


# --- the rest --------------------------------------------------------------------------------------


def test_runs_of_one_thread_id_are_made_one_after_another() -> None:
    inside: dict[int, int] = {}

    async def alone(state: State) -> State:
        inside[state["n"]] = inside.get(state["n"], 0) + 1
        assert inside[state["n"]] == 1
        await asyncio.sleep(0)
        inside[state["n"]] -= 1
        return {}

    async def main() -> list[str]:
        async with RxLangGraphBridge(
            graph_of(alone), thread_id=lambda message: str(message["n"])
        ) as bridge:
            runs = bridge.runs()
            observer: RecordingObserver[Any] = RecordingObserver()
            source = reactivex.from_iterable([{"n": n % 2} for n in range(6)])
            source.pipe(runs).subscribe(observer)
            await runs.join()
        return [repr(run.error) for run in observer.outcomes]

    assert asyncio.run(main()) == ["None"] * 6


def test_concurrency_is_limited_and_an_emitting_thread_waits() -> None:
    inside = most = 0

    with ForeignLoop() as foreign:
        meeting = asyncio.Barrier(2)

        async def meets(state: State) -> State:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await meeting.wait()
            inside -= 1
            return {}

        bridge = bridge_on(foreign, graph_of(meets), concurrency=2)
        observer: RecordingObserver[Any] = RecordingObserver()
        source = reactivex.from_iterable([{"n": n} for n in range(20)])
        source.pipe(
            ops.subscribe_on(NewThreadScheduler()), bridge.runs(ordered=True, buffer=1)
        ).subscribe(observer)
        observer.wait()
        assert [run.item["n"] for run in observer.outcomes] == [*range(20)]
        for answer in [bridge.submit({"n": n}) for n in range(6)]:
            answer.result(timeout=10)
        assert most == 2
        assert bridge.cleanup_tasks().clean


def test_a_bridge_that_is_held_is_closed_before_what_was_held_first() -> None:
    """The checkpointer, for one."""

    async def main() -> tuple[bool, bool]:
        async with handfast.Scope("app") as scope:
            bridge = await scope.hold(RxLangGraphBridge(WORKING, timeout=3600))
            answer = bridge.submit(WAITING)
            await asyncio.sleep(0)
        return answer.cancelled(), bridge.active_tasks == ()

    assert asyncio.run(main()) == (True, True)


def test_leaving_a_block_raises_the_failures_unless_another_error_is_raised() -> None:
    stuck = Stuck()

    async def main(fail: Callable[[], object]) -> None:
        async with RxLangGraphBridge(graph_of(stuck)) as bridge:
            bridge._scope._ending._timeout = 0.01
            bridge.submit({"n": 1})
            while not bridge.active_tasks or not stuck.begun.is_set():
                await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.05, stuck.gate.set)
            fail()

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(main(lambda: None))
    assert isinstance(
        handfast.split_errors(caught.value).cleanup[0], handfast.errors.StragglersLeft
    )
    stuck.gate.clear()
    stuck.begun.clear()

    def fail() -> None:
        raise KeyError("the body")

    with pytest.raises(KeyError, match="the body") as failed:
        asyncio.run(main(fail))
    assert "1 still running" in failed.value.__notes__[0]


def test_an_error_of_the_body_is_raised_alone_without_other_failures() -> None:
    async def main() -> None:
        async with RxLangGraphBridge(WORKING) as bridge:
            bridge.submit(WAITING)
            raise KeyError("the body")

    with pytest.raises(KeyError) as caught:
        asyncio.run(main())
    assert not hasattr(caught.value, "__notes__")


def test_a_bridge_is_created_where_the_loop_runs() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        RxLangGraphBridge(WORKING)
