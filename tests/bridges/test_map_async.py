"""map_async: an outcome for each item, bounded, ordered or as completed, disposed and joined."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import pytest
import reactivex
from reactivex import operators as ops
from reactivex.scheduler import NewThreadScheduler
from reactivex.subject import Subject

import handfast
from handfast.bridges.reactivex import MapAsync, Outcome, map_async
from handfast.explore import explore
from tests.bridges.recording_observer import RecordingObserver, describe
from tests.runtime.wrapped_loop import ForeignLoop
from tests.support.stepping import Stepping, cancel_everywhere, run_on


async def invert(n: int) -> float:
    await asyncio.sleep(0)
    return 1 / n


class Gates:
    """Work on an item waits for the item's gate. On one loop."""

    def __init__(self, count: int) -> None:
        self.gates = [asyncio.Event() for _ in range(count)]
        self.begun: list[int] = []
        self.most = 0
        self._inside = 0

    async def __call__(self, item: int) -> int:
        self.begun.append(item)
        self._inside += 1
        self.most = max(self.most, self._inside)
        try:
            await self.gates[item].wait()
        finally:
            self._inside -= 1
        return 10 * item


async def for_ever(item: int) -> None:
    await asyncio.Event().wait()


async def a_moment(item: int) -> int:
    return await asyncio.sleep(0.01, item)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_s2_4_one_failure_is_an_outcome_and_does_not_end_the_stream(kind: str) -> None:
    """S2.4: emitted in a thread of its own; the loop delivers."""
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope(on_failure="report")
        observer: RecordingObserver[int] = RecordingObserver()
        source = reactivex.of(1, 0, 4).pipe(ops.subscribe_on(NewThreadScheduler()))
        source.pipe(map_async(scope, invert, ordered=True)).subscribe(observer)
        observer.wait()
        assert observer.completed
        assert observer.threads == {foreign.thread}
        assert [*map(describe, observer.outcomes)] == [
            "1 -> 1.0",
            "0 failed: ZeroDivisionError",
            "4 -> 0.25",
        ]
        assert scope.close_from_thread(timeout=10).clean


def test_outcomes_come_as_completed_or_in_the_order_of_the_items(kind: str) -> None:
    async def main(ordered: bool) -> list[list[int]]:
        gates = Gates(3)
        observer: RecordingObserver[int] = RecordingObserver()
        seen = []
        async with handfast.Scope("s") as scope:
            mapping = map_async(scope, gates, ordered=ordered)
            reactivex.range(3).pipe(mapping).subscribe(observer)
            for item in (2, 0, 1):
                await turns()
                gates.gates[item].set()
                await turns()
                seen.append([outcome.item for outcome in observer.outcomes])
            await mapping.join()
        assert observer.completed
        return seen

    assert run_on(kind, main(ordered=False)) == [[2], [2, 0], [2, 0, 1]]
    assert run_on(kind, main(ordered=True)) == [[], [0], [0, 1, 2]]


def test_no_more_items_run_at_once_than_the_concurrency() -> None:
    async def main() -> tuple[int, list[int]]:
        gates = Gates(5)
        for gate in gates.gates[1:]:
            gate.set()
        async with handfast.Scope("s") as scope:
            mapping = map_async(scope, gates, concurrency=2)
            reactivex.range(5).pipe(mapping).subscribe()
            await turns(20)
            gates.gates[0].set()
            await mapping.join()
        return gates.most, gates.begun

    assert asyncio.run(main()) == (2, [0, 1, 2, 3, 4])


def test_an_error_of_the_source_comes_after_the_outcome_of_every_item() -> None:
    async def main() -> RecordingObserver[int]:
        gates = Gates(1)
        observer: RecordingObserver[int] = RecordingObserver()
        async with handfast.Scope("s") as scope:
            mapping = map_async(scope, gates)
            source = reactivex.concat(reactivex.of(0), reactivex.throw(OSError("feed lost")))
            source.pipe(mapping).subscribe(observer)
            await turns()
            assert not observer.ended.is_set()
            gates.gates[0].set()
            await mapping.join()
        return observer

    observer = asyncio.run(main())
    assert observer.values == [0]
    assert repr(observer.error) == "OSError('feed lost')"


# --- disposal ------------------------------------------------------------------------------------


def disposing(
    foreign: ForeignLoop, dispose: Callable[[Callable[[], None]], object]
) -> tuple[RecordingObserver[int], list[str], handfast.Scope]:
    """Two items run, one waits; then the subscription is disposed and joined."""
    log: list[str] = []
    begun = threading.Semaphore(0)

    async def work(item: int) -> None:
        begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            await turns()
            log.append(f"{item} cleaned up")

    scope = foreign.scope(on_failure="report")
    observer: RecordingObserver[int] = RecordingObserver()
    mapping = map_async(scope, work, concurrency=2)
    subscription = reactivex.range(3).pipe(mapping).subscribe(observer)
    for _ in range(2):
        assert begun.acquire(timeout=10)
    dispose(subscription.dispose)
    mapping.join_from_thread()
    return observer, log, scope


@pytest.mark.parametrize("where", ["in a thread", "on the loop"])
def test_disposal_cancels_and_joins(where: str, kind: str) -> None:
    with ForeignLoop(kind) as foreign:
        dispose: Callable[[Callable[[], None]], object] = (
            foreign.do if where == "on the loop" else lambda act: act()
        )
        observer, log, scope = disposing(foreign, dispose)
        assert len(scope) == 0
        assert log == ["0 cleaned up", "1 cleaned up"]
        assert observer.outcomes == []
        assert not observer.ended.is_set()
        assert scope.close_from_thread(timeout=10).clean


def test_a_scope_that_closes_meanwhile_does_not_interrupt_the_clean_up() -> None:
    """The close sends no second cancel after that of the disposal."""

    async def main() -> list[str]:
        log = []
        gate = asyncio.Event()

        async def work(item: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await gate.wait()
                log.append("cleaned up")

        scope = handfast.Scope("s", on_failure="report")
        subscription = reactivex.of(1).pipe(map_async(scope, work)).subscribe()
        await turns()
        subscription.dispose()
        await turns()
        closing = asyncio.create_task(scope.close())
        await turns()
        gate.set()
        log.append(str(await closing))
        return log

    assert asyncio.run(main()) == ["cleaned up", "scope 's' closed: 1 cancelled"]


def test_an_observer_that_disposes_ends_the_other_items() -> None:
    async def main() -> tuple[list[Any], int]:
        gates = Gates(3)
        gates.gates[1].set()
        observer: RecordingObserver[int] = RecordingObserver()
        source: Subject[int] = Subject()
        scope = handfast.Scope("s", on_failure="report")
        mapping = map_async(scope, gates)
        source.pipe(mapping, ops.take(1)).subscribe(observer)
        for item in range(3):
            source.on_next(item)
        await mapping.join()
        alive = len(scope)
        source.on_next(1)  # no observer is left
        await scope.close()
        return observer.values, alive

    assert asyncio.run(main()) == ([10], 0)


def test_disposal_unblocks_the_emitter() -> None:
    with ForeignLoop() as foreign:
        scope = foreign.scope(on_failure="report")
        mapping = map_async(scope, for_ever, concurrency=1, buffer=0)
        source: Subject[int] = Subject()
        subscription = source.pipe(mapping).subscribe()
        source.on_next(0)
        emitter = threading.Thread(target=source.on_next, args=(1,))
        emitter.start()
        subscription.dispose()
        emitter.join(10)
        assert not emitter.is_alive()
        mapping.join_from_thread()
        assert scope.close_from_thread(timeout=10).clean


def test_join_names_the_items_in_flight() -> None:
    with ForeignLoop() as foreign:
        scope = foreign.scope(on_failure="report")
        mapping = map_async(scope, for_ever)
        source: Subject[int] = Subject()
        source.pipe(mapping).subscribe()
        with pytest.raises(handfast.errors.StragglersLeft, match="the source has not ended"):
            mapping.join_from_thread(timeout=0)
        source.on_next(7)
        with pytest.raises(handfast.errors.StragglersLeft, match="in flight: 7"):
            mapping.join_from_thread(timeout=0.01)
        with pytest.raises(handfast.errors.StragglersLeft, match="have not ended"):
            foreign.wait_for(lambda: mapping.join(timeout=0.01))
        assert scope.close_from_thread(timeout=10).clean


def test_a_join_that_timed_out_does_not_call_a_closed_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ForeignLoop() as foreign:
        mapping = map_async(foreign.scope(on_failure="report"), for_ever)
        source: Subject[int] = Subject()
        subscription = source.pipe(mapping).subscribe()

        async def impatient() -> None:
            with pytest.raises(handfast.errors.StragglersLeft):
                await mapping.join(timeout=0)

        asyncio.run(impatient())
        subscription.dispose()
        mapping.join_from_thread()
    assert caplog.records == []


def test_the_blocking_join_raises_on_a_loop_instead_of_deadlocking() -> None:
    """S2.6"""
    with ForeignLoop() as foreign:
        mapping = map_async(foreign.scope(), invert)
        with pytest.raises(RuntimeError, match=r"await mapping\.join"):
            foreign.do(mapping.join_from_thread)


# --- scopes and loops that end -----------------------------------------------------------------


def test_a_scope_that_closes_cancels_the_items_in_flight_and_ends_the_stream() -> None:
    async def main() -> RecordingObserver[int]:
        observer: RecordingObserver[int] = RecordingObserver()
        source: Subject[int] = Subject()
        scope = handfast.Scope("s", on_failure="report")
        mapping = map_async(scope, Gates(2))
        source.pipe(mapping).subscribe(observer)
        source.on_next(0)
        await turns()
        await scope.close()
        assert not observer.ended.is_set()
        source.on_next(1)
        await mapping.join()
        assert not source.observers
        return observer

    observer = asyncio.run(main())
    assert [*map(describe, observer.outcomes)] == ["0 cancelled", "1 failed: ScopeClosed"]
    assert isinstance(observer.error, handfast.errors.ScopeClosed)


def test_s2_8_a_stopped_loop_ends_the_stream_at_once_with_all_outcomes() -> None:
    """S2.8"""
    with ForeignLoop() as foreign:
        begun = threading.Event()

        async def work(item: int) -> None:
            begun.set()
            await asyncio.Event().wait()

        scope = foreign.scope(on_failure="report")
        observer: RecordingObserver[int] = RecordingObserver()
        source: Subject[int] = Subject()
        source.pipe(map_async(scope, work)).subscribe(observer)
        source.on_next(0)
        begun.wait()
        foreign.stop()
        source.on_next(1)
        assert sorted(map(describe, observer.outcomes)) == [
            "0 failed: LoopStopped",
            "1 failed: LoopStopped",
        ]
        assert isinstance(observer.error, handfast.errors.LoopStopped)
        assert not source.observers


def test_s2_8_a_blocked_emitter_notices_that_the_loop_has_stopped() -> None:
    """S2.8: no item would ever complete."""
    with ForeignLoop() as foreign:
        scope = foreign.scope(on_failure="report")
        observer: RecordingObserver[int] = RecordingObserver()
        source: Subject[int] = Subject()
        mapping = map_async(scope, for_ever, concurrency=1, buffer=0)
        source.pipe(mapping).subscribe(observer)
        source.on_next(0)
        emitter = threading.Thread(target=source.on_next, args=(1,))
        emitter.start()
        foreign.stop()
        emitter.join(10)
        assert not emitter.is_alive()
        assert isinstance(observer.error, handfast.errors.LoopStopped)


class StoppingScope(handfast.Scope):
    """Its loop stops after the work on an item has ended, and before the emitter's future is resolved."""

    foreign: ForeignLoop

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        answer = super().submit(*args, **kwargs)
        assert answer.exception(timeout=10) is None
        self.gate = self.foreign.block(first=self.foreign.loop.stop)
        return answer


def test_s2_8_a_loop_that_stops_before_the_delivery_loses_no_outcome() -> None:
    """S2.8"""
    with ForeignLoop() as foreign:
        scope = foreign.do(lambda: StoppingScope("s", on_failure="report"))
        scope.foreign = foreign
        observer: RecordingObserver[int] = RecordingObserver()
        source: Subject[int] = Subject()
        source.pipe(map_async(scope, a_moment)).subscribe(observer)
        source.on_next(0)
        scope.gate.set()
        foreign.thread.join(10)
        assert observer.outcomes == []
        source.on_next(1)
        assert sorted(map(describe, observer.outcomes)) == ["0 -> 0", "1 failed: LoopStopped"]
        foreign.run_again()  # what was lost on the way comes after all, and changes nothing
        assert len(observer.outcomes) == 2


# --- observers that fail -----------------------------------------------------------------------


def test_an_observer_that_fails_is_reported_and_its_subscription_disposed() -> None:
    async def main() -> tuple[list[str], int]:
        reported: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(repr(context["exception"])))

        def observe(outcome: Outcome[int, int]) -> None:
            raise KeyError(outcome.item)

        gates = Gates(2)
        gates.gates[0].set()
        scope = handfast.Scope("s", on_failure="report")
        mapping = map_async(scope, gates)
        reactivex.range(2).pipe(mapping).subscribe(observe)
        await mapping.join()
        alive = len(scope)
        await scope.close()
        return reported, alive

    assert asyncio.run(main()) == (["KeyError(0)"], 0)


def test_an_error_without_on_error_is_reported() -> None:
    """reactivex raises an error for which there is no on_error."""

    async def main() -> list[str]:
        reported: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(repr(context["exception"])))
        gates = Gates(1)
        async with handfast.Scope("s") as scope:
            mapping = map_async(scope, gates)
            source = reactivex.concat(reactivex.of(0), reactivex.throw(OSError("feed lost")))
            source.pipe(mapping).subscribe(lambda outcome: None)
            await turns()
            gates.gates[0].set()
            await mapping.join()
        await turns()
        return reported

    assert asyncio.run(main()) == ["OSError('feed lost')"]


def test_without_a_loop_the_error_of_an_observer_is_raised_to_the_source() -> None:
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        source: Subject[int] = Subject()
        source.pipe(map_async(scope, invert)).subscribe(lambda outcome: None)
        foreign.stop()
        with pytest.raises(handfast.errors.LoopStopped):
            source.on_next(1)


# --- schedules -----------------------------------------------------------------------------------


def test_explored_every_item_has_one_outcome_from_whatever_thread_it_comes() -> None:
    """Two emitting threads, a slow failure: bounded, complete, and joined in every schedule."""

    async def program() -> None:
        inside = most = 0

        async def work(item: int) -> int:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1
            if item == 1:
                raise ValueError
            return item

        observer: RecordingObserver[int] = RecordingObserver()
        scope = handfast.Scope("s", on_failure="report")
        mapping = map_async(scope, work, concurrency=1, buffer=1)
        sources: list[Subject[int]] = [Subject(), Subject()]
        for source in sources:
            source.pipe(mapping).subscribe(observer.outcomes.append)

        def emit(source: Subject[int], items: range) -> None:
            for item in items:
                source.on_next(item)
            source.on_completed()

        await asyncio.gather(
            asyncio.to_thread(emit, sources[0], range(2)),
            asyncio.to_thread(emit, sources[1], range(2, 4)),
        )
        await mapping.join()
        assert most <= 2  # one for each subscription
        assert sorted(map(describe, observer.outcomes)) == [
            "0 -> 0",
            "1 failed: ValueError",
            "2 -> 2",
            "3 -> 3",
        ]
        assert len(scope) == 0
        await scope.close()

    assert explore(program, schedules=150).counterexample is None


def test_explored_after_disposal_in_a_thread_no_task_runs() -> None:
    async def program() -> None:
        at_work = 0
        joined = False

        async def work(item: int) -> None:
            nonlocal at_work
            assert not joined
            at_work += 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0.001)
                raise
            finally:
                at_work -= 1

        scope = handfast.Scope("s", on_failure="report")
        mapping = map_async(scope, work, concurrency=1, buffer=0)
        source: Subject[int] = Subject()
        subscription = source.pipe(mapping).subscribe()

        def emit() -> None:
            for item in range(3):
                source.on_next(item)

        emitting = asyncio.create_task(asyncio.to_thread(emit))
        await asyncio.sleep(0.01)
        await asyncio.to_thread(subscription.dispose)
        await mapping.join()
        joined = True
        assert at_work == 0
        await emitting
        await scope.close()

    assert explore(program, schedules=150).counterexample is None


def test_cancelling_an_item_at_any_step_affects_only_its_outcome() -> None:
    """S2.4"""

    async def program(stepping: Stepping) -> list[str]:
        observer: RecordingObserver[int] = RecordingObserver()
        scope = handfast.Scope("s", on_failure="report")
        mapping = map_async(scope, a_moment, concurrency=1, ordered=True)
        reactivex.range(2).pipe(mapping).subscribe(observer)
        while not scope.tasks:
            await asyncio.sleep(0)
        stepping.victim(scope.tasks[0])
        await mapping.join()
        assert observer.completed
        await scope.close()
        return [*map(describe, observer.outcomes)]

    outcomes = list(cancel_everywhere(program))
    assert len(outcomes) > 3
    assert all(outcome == ["0 cancelled", "1 -> 1"] for outcome in outcomes[:-1])
    assert outcomes[-1] == ["0 -> 0", "1 -> 1"]


# --- describe -----------------------------------------------------------------------------------------


def test_wrong_arguments_are_refused_at_once() -> None:
    scope = handfast.Scope("s")
    mistakes: list[dict[str, Any]] = [{"concurrency": 0}, {"buffer": -1}, {"when_full": "drop"}]
    for mistake in mistakes:
        with pytest.raises(ValueError, match=r"concurrency is at least 1|when_full is"):
            map_async(scope, invert, **mistake)
    assert isinstance(map_async(scope, invert), MapAsync)


def test_the_result_of_an_outcome() -> None:
    assert Outcome(1, value="one").result() == "one"
    with pytest.raises(KeyError):
        Outcome(1, error=KeyError()).result()
    with pytest.raises(CancelledError, match="the work on 1 was cancelled"):
        Outcome(1, cancelled=True).result()
