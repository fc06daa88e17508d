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

import holdfast
from holdfast.bridges.reactivex import MapAsync, Outcome, map_async
from holdfast.explore import explore
from tests.bridges.watching import Watching, words
from tests.runtime.foreign import ForeignLoop
from tests.stepping import Stepping, cancel_everywhere, run_on


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


def test_s2_4_one_failure_is_an_outcome_and_the_stream_lives_on(kind: str) -> None:
    """S2.4: emitted in a thread of its own; the loop delivers."""
    with ForeignLoop(kind) as foreign:
        scope = foreign.scope(on_failure="report")
        watching: Watching[int] = Watching()
        source = reactivex.of(1, 0, 4).pipe(ops.subscribe_on(NewThreadScheduler()))
        source.pipe(map_async(scope, invert, ordered=True)).subscribe(watching)
        watching.wait()
        assert watching.completed
        assert watching.threads == {foreign.thread}
        assert [*map(words, watching.outcomes)] == [
            "1 -> 1.0",
            "0 failed: ZeroDivisionError",
            "4 -> 0.25",
        ]
        assert scope.close_from_thread(timeout=10).clean


def test_outcomes_come_as_the_work_ends_or_in_the_order_of_the_items(kind: str) -> None:
    async def main(ordered: bool) -> list[list[int]]:
        gates = Gates(3)
        watching: Watching[int] = Watching()
        seen = []
        async with holdfast.Scope("s") as scope:
            mapping = map_async(scope, gates, ordered=ordered)
            reactivex.range(3).pipe(mapping).subscribe(watching)
            for item in (2, 0, 1):
                await turns()
                gates.gates[item].set()
                await turns()
                seen.append([outcome.item for outcome in watching.outcomes])
            await mapping.join()
        assert watching.completed
        return seen

    assert run_on(kind, main(ordered=False)) == [[2], [2, 0], [2, 0, 1]]
    assert run_on(kind, main(ordered=True)) == [[], [0], [0, 1, 2]]


def test_no_more_are_worked_on_at_once_than_was_said() -> None:
    async def main() -> tuple[int, list[int]]:
        gates = Gates(5)
        for gate in gates.gates[1:]:
            gate.set()
        async with holdfast.Scope("s") as scope:
            mapping = map_async(scope, gates, concurrency=2)
            reactivex.range(5).pipe(mapping).subscribe()
            await turns(20)
            gates.gates[0].set()
            await mapping.join()
        return gates.most, gates.begun

    assert asyncio.run(main()) == (2, [0, 1, 2, 3, 4])


def test_an_error_of_the_source_comes_after_the_outcome_of_every_item() -> None:
    async def main() -> Watching[int]:
        gates = Gates(1)
        watching: Watching[int] = Watching()
        async with holdfast.Scope("s") as scope:
            mapping = map_async(scope, gates)
            source = reactivex.concat(reactivex.of(0), reactivex.throw(OSError("feed lost")))
            source.pipe(mapping).subscribe(watching)
            await turns()
            assert not watching.ended.is_set()
            gates.gates[0].set()
            await mapping.join()
        return watching

    watching = asyncio.run(main())
    assert watching.values == [0]
    assert repr(watching.error) == "OSError('feed lost')"


# --- disposal ------------------------------------------------------------------------------------


def disposing(
    foreign: ForeignLoop, dispose: Callable[[Callable[[], None]], object]
) -> tuple[Watching[int], list[str], holdfast.Scope]:
    """Two items at work, one that waits for its turn; then somebody disposes, and we join."""
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
    watching: Watching[int] = Watching()
    mapping = map_async(scope, work, concurrency=2)
    subscription = reactivex.range(3).pipe(mapping).subscribe(watching)
    for _ in range(2):
        assert begun.acquire(timeout=10)
    dispose(subscription.dispose)
    mapping.join_from_thread()
    return watching, log, scope


@pytest.mark.parametrize("where", ["in a thread", "on the loop"])
def test_disposal_cancels_and_joins(where: str, kind: str) -> None:
    with ForeignLoop(kind) as foreign:
        dispose: Callable[[Callable[[], None]], object] = (
            foreign.do if where == "on the loop" else lambda act: act()
        )
        watching, log, scope = disposing(foreign, dispose)
        assert len(scope) == 0
        assert log == ["0 cleaned up", "1 cleaned up"]
        assert watching.outcomes == []
        assert not watching.ended.is_set()
        assert scope.close_from_thread(timeout=10).clean


def test_a_scope_that_closes_meanwhile_does_not_cut_the_clean_up_short() -> None:
    """The one cancel of the disposal counts as that of the close."""

    async def main() -> list[str]:
        log = []
        gate = asyncio.Event()

        async def work(item: int) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await gate.wait()
                log.append("cleaned up")

        scope = holdfast.Scope("s", on_failure="report")
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


def test_an_observer_that_has_enough_ends_the_rest() -> None:
    async def main() -> tuple[list[Any], int]:
        gates = Gates(3)
        gates.gates[1].set()
        watching: Watching[int] = Watching()
        source: Subject[int] = Subject()
        scope = holdfast.Scope("s", on_failure="report")
        mapping = map_async(scope, gates)
        source.pipe(mapping, ops.take(1)).subscribe(watching)
        for item in range(3):
            source.on_next(item)
        await mapping.join()
        alive = len(scope)
        source.on_next(1)  # nobody listens
        await scope.close()
        return watching.values, alive

    assert asyncio.run(main()) == ([10], 0)


def test_a_blocked_emitter_is_let_go_by_the_disposal() -> None:
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


def test_join_names_the_items_that_are_still_at_work() -> None:
    with ForeignLoop() as foreign:
        scope = foreign.scope(on_failure="report")
        mapping = map_async(scope, for_ever)
        source: Subject[int] = Subject()
        source.pipe(mapping).subscribe()
        with pytest.raises(holdfast.StragglersLeft, match="the source has not ended"):
            mapping.join_from_thread(timeout=0)
        source.on_next(7)
        with pytest.raises(holdfast.StragglersLeft, match="at work on: 7"):
            mapping.join_from_thread(timeout=0.01)
        with pytest.raises(holdfast.StragglersLeft, match="1 subscriptions"):
            foreign.wait_for(lambda: mapping.join(deadline=0.01))
        assert scope.close_from_thread(timeout=10).clean


def test_a_join_that_gave_up_is_forgotten_when_its_loop_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ForeignLoop() as foreign:
        mapping = map_async(foreign.scope(on_failure="report"), for_ever)
        source: Subject[int] = Subject()
        subscription = source.pipe(mapping).subscribe()

        async def impatient() -> None:
            with pytest.raises(holdfast.StragglersLeft):
                await mapping.join(deadline=0)

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


def test_a_scope_that_closes_cancels_what_is_under_way_and_ends_the_stream() -> None:
    async def main() -> Watching[int]:
        watching: Watching[int] = Watching()
        source: Subject[int] = Subject()
        scope = holdfast.Scope("s", on_failure="report")
        mapping = map_async(scope, Gates(2))
        source.pipe(mapping).subscribe(watching)
        source.on_next(0)
        await turns()
        await scope.close()
        assert not watching.ended.is_set()
        source.on_next(1)
        await mapping.join()
        assert not source.observers
        return watching

    watching = asyncio.run(main())
    assert [*map(words, watching.outcomes)] == ["0 cancelled", "1 failed: ScopeClosed"]
    assert isinstance(watching.error, holdfast.ScopeClosed)


def test_s2_8_a_stopped_loop_ends_the_stream_at_once_and_answers_everybody() -> None:
    """S2.8"""
    with ForeignLoop() as foreign:
        begun = threading.Event()

        async def work(item: int) -> None:
            begun.set()
            await asyncio.Event().wait()

        scope = foreign.scope(on_failure="report")
        watching: Watching[int] = Watching()
        source: Subject[int] = Subject()
        source.pipe(map_async(scope, work)).subscribe(watching)
        source.on_next(0)
        begun.wait()
        foreign.stop()
        source.on_next(1)
        assert sorted(map(words, watching.outcomes)) == [
            "0 failed: LoopStopped",
            "1 failed: LoopStopped",
        ]
        assert isinstance(watching.error, holdfast.LoopStopped)
        assert not source.observers


def test_s2_8_a_blocked_emitter_notices_that_the_loop_has_stopped() -> None:
    """S2.8: nobody would ever make room."""
    with ForeignLoop() as foreign:
        scope = foreign.scope(on_failure="report")
        watching: Watching[int] = Watching()
        source: Subject[int] = Subject()
        mapping = map_async(scope, for_ever, concurrency=1, buffer=0)
        source.pipe(mapping).subscribe(watching)
        source.on_next(0)
        emitter = threading.Thread(target=source.on_next, args=(1,))
        emitter.start()
        foreign.stop()
        emitter.join(10)
        assert not emitter.is_alive()
        assert isinstance(watching.error, holdfast.LoopStopped)


class StoppingScope(holdfast.Scope):
    """Its loop stops after the work on an item has ended, and before the emitter has its answer."""

    foreign: ForeignLoop

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        answer = super().submit(*args, **kwargs)
        assert answer.exception(timeout=10) is None
        self.gate = self.foreign.block(first=self.foreign.loop.stop)
        return answer


def test_s2_8_a_loop_that_stops_on_the_way_to_the_observer_loses_no_outcome() -> None:
    """S2.8"""
    with ForeignLoop() as foreign:
        scope = foreign.do(lambda: StoppingScope("s", on_failure="report"))
        scope.foreign = foreign
        watching: Watching[int] = Watching()
        source: Subject[int] = Subject()
        source.pipe(map_async(scope, a_moment)).subscribe(watching)
        source.on_next(0)
        scope.gate.set()
        foreign.thread.join(10)
        assert watching.outcomes == []
        source.on_next(1)
        assert sorted(map(words, watching.outcomes)) == ["0 -> 0", "1 failed: LoopStopped"]
        foreign.run_again()  # what was lost on the way comes after all, and changes nothing
        assert len(watching.outcomes) == 2


# --- observers that fail -----------------------------------------------------------------------


def test_an_observer_that_fails_is_reported_and_its_subscription_disposed() -> None:
    async def main() -> tuple[list[str], int]:
        told: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(repr(context["exception"])))

        def observe(outcome: Outcome[int, int]) -> None:
            raise KeyError(outcome.item)

        gates = Gates(2)
        gates.gates[0].set()
        scope = holdfast.Scope("s", on_failure="report")
        mapping = map_async(scope, gates)
        reactivex.range(2).pipe(mapping).subscribe(observe)
        await mapping.join()
        alive = len(scope)
        await scope.close()
        return told, alive

    assert asyncio.run(main()) == (["KeyError(0)"], 0)


def test_a_stream_that_nobody_would_hear_fail_is_reported() -> None:
    """reactivex raises what has no on_error."""

    async def main() -> list[str]:
        told: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(repr(context["exception"])))
        gates = Gates(1)
        async with holdfast.Scope("s") as scope:
            mapping = map_async(scope, gates)
            source = reactivex.concat(reactivex.of(0), reactivex.throw(OSError("feed lost")))
            source.pipe(mapping).subscribe(lambda outcome: None)
            await turns()
            gates.gates[0].set()
            await mapping.join()
        await turns()
        return told

    assert asyncio.run(main()) == ["OSError('feed lost')"]


def test_without_a_loop_an_observer_fails_where_the_source_emits() -> None:
    with ForeignLoop() as foreign:
        scope = foreign.scope()
        source: Subject[int] = Subject()
        source.pipe(map_async(scope, invert)).subscribe(lambda outcome: None)
        foreign.stop()
        with pytest.raises(holdfast.LoopStopped):
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

        watching: Watching[int] = Watching()
        scope = holdfast.Scope("s", on_failure="report")
        mapping = map_async(scope, work, concurrency=1, buffer=1)
        sources: list[Subject[int]] = [Subject(), Subject()]
        for source in sources:
            source.pipe(mapping).subscribe(watching.outcomes.append)

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
        assert sorted(map(words, watching.outcomes)) == [
            "0 -> 0",
            "1 failed: ValueError",
            "2 -> 2",
            "3 -> 3",
        ]
        assert len(scope) == 0
        await scope.close()

    assert explore(program, schedules=150).counterexample is None


def test_explored_disposal_in_a_thread_leaves_nobody_at_work() -> None:
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

        scope = holdfast.Scope("s", on_failure="report")
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


def test_cancelling_the_work_on_an_item_at_any_step_is_its_outcome_alone() -> None:
    """S2.4"""

    async def program(stepping: Stepping) -> list[str]:
        watching: Watching[int] = Watching()
        scope = holdfast.Scope("s", on_failure="report")
        mapping = map_async(scope, a_moment, concurrency=1, ordered=True)
        reactivex.range(2).pipe(mapping).subscribe(watching)
        while not scope.tasks:
            await asyncio.sleep(0)
        stepping.victim(scope.tasks[0])
        await mapping.join()
        assert watching.completed
        await scope.close()
        return [*map(words, watching.outcomes)]

    outcomes = list(cancel_everywhere(program))
    assert len(outcomes) > 3
    assert all(outcome == ["0 cancelled", "1 -> 1"] for outcome in outcomes[:-1])
    assert outcomes[-1] == ["0 -> 0", "1 -> 1"]


# --- words -----------------------------------------------------------------------------------------


def test_mistakes_are_named_where_they_are_made() -> None:
    scope = holdfast.Scope("s")
    mistakes: list[dict[str, Any]] = [{"concurrency": 0}, {"buffer": -1}, {"when_full": "drop"}]
    for mistake in mistakes:
        with pytest.raises(ValueError, match=r"at least one item at once|when_full is"):
            map_async(scope, invert, **mistake)
    assert isinstance(map_async(scope, invert), MapAsync)


def test_the_result_of_an_outcome() -> None:
    assert Outcome(1, value="one").result() == "one"
    with pytest.raises(KeyError):
        Outcome(1, error=KeyError()).result()
    with pytest.raises(CancelledError, match="the work on 1 was cancelled"):
        Outcome(1, cancelled=True).result()
