"""Releasing and closing what a scope holds: once, bounded, with a report of what is left (S3.3 to S3.7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import handfast
from tests.runtime.hosting.resources import Life, Uncancelled, outcome, overlapping, place, resource
from tests.support.failures import errors_into
from tests.support.stepping import Stepping, SteppingLoop, cancel_everywhere, run_on, run_stepping


@asynccontextmanager
async def swallowing(release: asyncio.Event) -> AsyncIterator[str]:
    """Its clean-up takes no notice of a cancel."""
    yield "swallower"
    while not release.is_set():
        try:
            await release.wait()  # it stands here
        except asyncio.CancelledError:
            pass


@asynccontextmanager
async def slow_to_leave(seconds: float) -> AsyncIterator[str]:
    yield "slow"
    await asyncio.sleep(seconds)


@asynccontextmanager
async def failing_to_leave(error: Exception) -> AsyncIterator[str]:
    yield "failing"
    await asyncio.sleep(0)
    raise error


def long_lived(**options: Any) -> handfast.Scope:
    return handfast.Scope("s", on_failure="report", **options)


# --- once --------------------------------------------------------------------------------------


def test_closers_and_releasers_that_overlap_share_one_clean_up_at_every_interleaving() -> None:
    """S3.5: release, close and close again, each beginning at any step of the others."""

    async def program(steps: tuple[int, ...], order: str, stepping: Stepping) -> None:
        life = Life()
        scope = long_lived()
        value = await scope.hold(resource(life, "task group"))
        todo = iter(order)

        async def close() -> None:
            if next(todo) == "r":
                await scope.release(value)
            else:
                assert (await scope.close()).clean
            life.check()
            assert life.ended == 1

        closers = await overlapping(stepping, steps, close)
        assert [closer.result() for closer in closers] == ["finished"] * len(steps)
        assert (await scope.close()).clean

    for order in ("rrc", "rcr", "crc"):
        for second in range(14):
            for third in range(second, 14, 2):
                run_stepping(partial(program, (0, second, third), order))


def test_many_closers_share_one_clean_up(kind: str) -> None:
    """S3.5"""

    async def main() -> None:
        life = Life(pause=0.0)
        scope = long_lived()
        value = await scope.hold(resource(life))
        closers = [scope.release(value) if n % 2 else scope.close() for n in range(50)]
        await asyncio.gather(*closers)
        life.check()

    run_on(kind, main())


# --- only when it is gone, and within the bound --------------------------------------------------


@pytest.mark.parametrize("way", ["close", "release"])
def test_it_returns_only_when_the_resource_is_gone(way: str) -> None:
    """S3.3"""

    async def program(stepping: Stepping) -> float:
        life = Life(pause=7)
        scope = long_lived()
        value = await scope.hold(resource(life))
        await (scope.close() if way == "close" else scope.release(value))
        life.check()
        assert (await scope.close()).clean
        return stepping.loop.time()

    assert run_stepping(program) == 7


def test_release_names_a_swallower_when_the_deadline_is_over() -> None:
    """S3.3, S3.7: what, where it was created, where it waits."""

    async def program(stepping: Stepping) -> float:
        release = asyncio.Event()
        scope = long_lived()
        value = await scope.hold(swallowing(release), name="database", timeout=5)
        with pytest.raises(handfast.errors.StragglersLeft) as caught:
            await scope.release(value)
        elapsed = stepping.loop.time()
        words = str(caught.value)
        assert words.startswith("not ended within 5 s: database (5.0 s old, created at ")
        assert Path(__file__).name + place(program, "database") + ", waiting at" in words
        assert words.endswith(place(swallowing, "stands here") + ")")
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)
        release.set()
        await scope.close()
        return elapsed

    assert run_stepping(program) == 5


def test_the_report_of_a_close_names_what_is_left_or_that_nothing_is() -> None:
    """S3.3, S3.7"""

    async def program(stepping: Stepping) -> float:
        release = asyncio.Event()
        scope = long_lived()
        await scope.hold(swallowing(release), name="database", timeout=3)
        await scope.hold(resource(Life()), name="cache")
        report = await scope.close(timeout=6)
        elapsed = stepping.loop.time()
        [straggler] = report.stragglers
        assert straggler.name == "hold database"
        assert straggler.age == 6
        assert str(straggler.origin).endswith(place(program, "swallowing(release), name"))
        assert straggler.stack[-1].endswith(place(swallowing, "stands here"))
        assert [ending.name for ending in report.finished] == ["hold cache"]
        assert "still running: hold database" in str(report)
        assert not report.clean
        with pytest.raises(ExceptionGroup) as caught:
            report.raise_if_unclean()
        assert [type(e) for e in handfast.split_errors(caught.value).cleanup] == [
            handfast.errors.StragglersLeft
        ]
        release.set()
        await asyncio.sleep(1)
        assert (await scope.close()).clean
        return elapsed

    assert run_stepping(program) == 6


@pytest.mark.parametrize("way", ["close", "release"])
def test_a_clean_up_that_is_too_slow_is_cut_and_says_where_it_stood(way: str) -> None:
    """S3.3"""

    async def program(stepping: Stepping) -> float:
        scope = long_lived()
        value = await scope.hold(slow_to_leave(60), name="pool", timeout=5)
        if way == "release":
            with pytest.raises(TimeoutError) as caught:
                await scope.release(value)
            error: BaseException = caught.value
        else:
            reported: list[Any] = []
            stepping.loop.set_exception_handler(lambda _, context: reported.append(context))
            [error] = (await scope.close()).cleanup_errors
        assert "leaving pool took more than 5 s; it was waiting at tests" in str(error)
        assert "in slow_to_leave" in str(error)
        assert handfast.split_errors(error).cleanup == (error,)
        assert handfast.split_errors(error).operational == ()
        elapsed = stepping.loop.time()
        await scope.close()
        return elapsed

    assert run_stepping(program) == 4.95


def test_what_a_clean_up_raises_when_it_is_cut_is_not_lost() -> None:
    """S3.6"""

    @asynccontextmanager
    async def complaining() -> AsyncIterator[str]:
        yield "it"
        try:
            await asyncio.sleep(60)
        finally:
            raise OSError("half written")

    async def program(stepping: Stepping) -> None:
        scope = long_lived()
        value = await scope.hold(complaining(), timeout=5)
        with pytest.raises(TimeoutError) as caught:
            await scope.release(value)
        assert repr(caught.value.__cause__) == "OSError('half written')"
        failure = handfast.split_errors(caught.value)
        assert failure.operational == ()
        assert [type(error) for error in failure.cleanup] == [TimeoutError, OSError]
        await scope.close()

    run_stepping(program)


def test_a_swallower_does_not_hang_the_loops_teardown_and_is_named() -> None:
    """S3.3, S3.7: asyncio.run would wait for it for ever."""
    reported: list[dict[str, Any]] = []

    async def main() -> tuple[handfast.Scope, asyncio.Event]:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context)
        )
        release = asyncio.Event()
        scope = long_lived()
        await scope.hold(swallowing(release), name="database", timeout=5)
        return scope, release

    with asyncio.Runner(loop_factory=SteppingLoop) as runner:
        loop = runner.get_loop()
        scope, release = runner.run(main())
        asyncio.runners._cancel_all_tasks(loop)  # type: ignore[attr-defined]
        assert loop.time() == 5
        assert "at the end of its loop: not ended within 5 s: database" in reported[0]["message"]
        release.set()
        runner.run(outcome(scope.close))


# --- errors ------------------------------------------------------------------------------------


def test_an_error_of_the_clean_up_is_in_the_report_and_in_the_group() -> None:
    """S3.6"""

    async def program(stepping: Stepping) -> None:
        scope = handfast.Scope("s")
        await scope.hold(failing_to_leave(OSError("disk full")))
        report = await scope.close()
        assert [repr(error) for error in report.cleanup_errors] == ["OSError('disk full')"]
        assert report.failed == ()

        with pytest.raises(handfast.errors.CleanupErrors) as caught:
            async with handfast.Scope("t") as scope:
                await scope.hold(failing_to_leave(OSError("disk full")))
        failure = handfast.split_errors(caught.value)
        assert failure.operational == ()
        assert [repr(error) for error in failure.cleanup] == ["OSError('disk full')"]

    run_stepping(program)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_all_releasers_get_the_error_also_one_that_is_cancelled(times: int) -> None:
    """S3.5, S3.6, at every step. The cancel is not forgotten for it: S3.4."""

    async def program(stepping: Stepping) -> tuple[str, str, bool]:
        scope = long_lived()
        value = await scope.hold(failing_to_leave(OSError("disk full")))
        log: list[str] = []

        async def releaser() -> None:
            with pytest.raises(OSError, match="disk full") as caught:
                await scope.release(value)
            assert handfast.split_errors(caught.value).cleanup == (caught.value,)
            log.append("OSError")
            await asyncio.sleep(0)
            await asyncio.sleep(1)
            log.append("went on")

        victim = stepping.victim(asyncio.create_task(releaser()))
        other = asyncio.create_task(outcome(scope.release, value))
        await asyncio.wait({victim, other})
        assert (await scope.close()).clean  # they have it
        return " ".join(log), other.result(), victim.cancelled()

    runs = list(cancel_everywhere(program, times=times))
    assert runs[0] == ("", "OSError", True)  # it never began to release
    assert set(runs[1:-1]) == {("OSError", "OSError", True)}
    assert runs[-1] == ("OSError went on", "OSError", False)


def test_an_error_after_the_releaser_has_given_up_goes_to_the_scope() -> None:
    """S3.6"""

    @asynccontextmanager
    async def late(release: asyncio.Event) -> AsyncIterator[str]:
        async with swallowing(release) as value:
            yield value
        raise OSError("in the end")

    async def program(stepping: Stepping) -> list[str]:
        seen: list[str] = []
        release = asyncio.Event()
        scope = handfast.Scope("s", on_failure=lambda end: seen.append(repr(end.error)))
        value = await scope.hold(late(release), timeout=1)
        assert await outcome(scope.release, value) == "StragglersLeft"
        release.set()
        await asyncio.sleep(1)
        await scope.close()
        return seen

    [error] = run_stepping(program)
    assert error.startswith(("OSError('in the end'", "TimeoutError('leaving"))


def test_a_clean_up_that_other_code_cancels_is_an_error() -> None:
    """S3.6: a clean-up that was cut is no success."""

    async def program(stepping: Stepping) -> None:
        scope = long_lived()
        value = await scope.hold(slow_to_leave(5), name="pool")
        releaser = asyncio.create_task(scope.release(value))
        await asyncio.sleep(1)
        [owner] = scope.tasks
        owner.cancel()
        with pytest.raises(
            handfast.errors.HandfastError, match="leaving pool was cancelled by"
        ) as caught:
            await releaser
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)
        await scope.close()

    run_stepping(program)


def test_an_error_in_the_clean_up_of_an_owner_that_was_cancelled_is_a_clean_up_error() -> None:
    """S3.6: by phase. What a task group of the resource raises is not (test_holding_owner)."""

    @asynccontextmanager
    async def failing() -> AsyncIterator[str]:
        try:
            yield "it"
        finally:
            raise OSError("disk full")

    async def program(stepping: Stepping) -> list[BaseException]:
        seen: list[BaseException] = []
        scope = handfast.Scope("s", on_failure=errors_into(seen))
        await scope.hold(failing())
        [owner] = scope.tasks
        owner.cancel()
        await asyncio.sleep(1)
        await scope.close()
        return seen

    [error] = run_stepping(program)
    assert handfast.split_errors(error).cleanup == (error,)


def test_a_releaser_that_joins_a_clean_up_under_way_gets_its_error_with_its_phase() -> None:
    """S3.5, S3.6: somebody has cancelled the owner, and then somebody else releases."""

    @asynccontextmanager
    async def failing() -> AsyncIterator[str]:
        try:
            yield "it"
        finally:
            await asyncio.sleep(2)
            raise OSError("disk full")

    async def program(stepping: Stepping) -> None:
        scope = long_lived()
        value = await scope.hold(failing())
        [owner] = scope.tasks
        owner.cancel()
        await asyncio.sleep(1)
        with pytest.raises(OSError, match="disk full") as caught:
            await scope.release(value)
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)
        assert (await scope.close()).clean

    run_stepping(program)


# --- while it is being entered -------------------------------------------------------------------


class Entering:
    """A resource that takes its time to enter, and deals with a cancel in its own way."""

    def __init__(self, on_cancel: str) -> None:
        self.on_cancel = on_cancel
        self.left = 0

    async def __aenter__(self) -> Entering:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            if self.on_cancel == "fails":
                raise OSError("half entered") from None
            if self.on_cancel == "gives up":
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(1)
        self.left += 1


@pytest.mark.parametrize(
    ("on_cancel", "error", "left"),
    [("gives up", "ScopeClosed", 0), ("fails", "OSError", 0), ("goes on", "ScopeClosed", 1)],
)
def test_a_scope_that_closes_while_entering_leaves_nothing_entered(
    on_cancel: str, error: str, left: int
) -> None:
    """S3.1: also when the resource goes on entering."""

    async def program(stepping: Stepping) -> None:
        thing = Entering(on_cancel)
        scope = long_lived()
        holder = asyncio.create_task(outcome(scope.hold, thing))
        await asyncio.sleep(0.5)
        report = await scope.close()
        assert await holder == error
        assert report.clean
        assert thing.left == left

    run_stepping(program)


@pytest.mark.parametrize(
    ("on_cancel", "end", "left"),
    [("gives up", "cancelled", 0), ("fails", "OSError", 0), ("goes on", "cancelled", 1)],
)
def test_a_holder_that_is_cancelled_while_entering_leaves_nothing_entered(
    on_cancel: str, end: str, left: int
) -> None:
    """S3.1; an error on the way back is not lost, and the scope lives on: S3.6."""

    async def program(stepping: Stepping) -> None:
        thing = Entering(on_cancel)
        scope = long_lived()
        holder = asyncio.create_task(outcome(scope.hold, thing))
        await asyncio.sleep(0.5)
        holder.cancel()
        assert await outcome(lambda: holder) == "finished"
        assert holder.result() == end
        assert thing.left == left
        assert len(scope) == 0
        await scope.hold(resource(Life()))
        assert (await scope.close()).clean

    run_stepping(program)


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("on_cancel", ["gives up", "fails", "goes on"])
def test_a_cancelled_holder_never_leaves_a_resource_entered(on_cancel: str, times: int) -> None:
    """S3.1, at every step."""

    async def program(stepping: Stepping) -> str:
        thing = Entering(on_cancel)
        scope = long_lived()
        holder = stepping.victim(asyncio.create_task(outcome(scope.hold, thing)))
        await asyncio.wait({holder})
        end = "cancelled" if holder.cancelled() else holder.result()
        if end != "finished":
            assert len(scope) == 0
        await scope.close()
        return end

    ends = list(cancel_everywhere(program, times=times))
    assert ends[-1] == "finished"
    assert set(ends[:-1]) <= {"cancelled", "OSError"}


def test_an_error_on_the_way_back_from_entering_is_a_clean_up_error() -> None:
    """S3.6"""

    async def program(stepping: Stepping) -> None:
        scope = long_lived()
        closer = asyncio.create_task(asyncio.sleep(0.5))
        closer.add_done_callback(lambda _: closers.append(asyncio.create_task(scope.close())))
        closers: list[asyncio.Task[handfast.types.CloseReport]] = []
        with pytest.raises(OSError, match="half entered") as caught:
            await scope.hold(Entering("fails"))
        assert handfast.split_errors(caught.value).cleanup == (caught.value,)
        assert (await closers[0]).clean

    run_stepping(program)


def test_an_error_that_no_holder_waits_for_goes_to_the_scope() -> None:
    """S3.6: the holder was cancelled, and entering took longer than the deadline."""

    class Slow:
        async def __aenter__(self) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(10)
                raise OSError("at last")

        async def __aexit__(self, *_: object) -> None: ...

    async def program(stepping: Stepping) -> list[BaseException]:
        seen: list[BaseException] = []
        scope = handfast.Scope("s", on_failure=errors_into(seen))
        holder = asyncio.create_task(outcome(lambda: scope.hold(Slow(), timeout=5)))
        await asyncio.sleep(1)
        holder.cancel()
        assert await holder == "cancelled"
        assert stepping.loop.time() == 6
        await asyncio.sleep(10)
        await scope.close()
        return seen

    [error] = run_stepping(program)
    assert repr(error) == "OSError('at last')"
    assert handfast.split_errors(error).cleanup == (error,)


def test_an_error_while_entering_is_raised_to_the_holder_and_keeps_its_history() -> None:
    """S3.6"""

    @asynccontextmanager
    async def unreachable() -> AsyncIterator[None]:
        try:
            raise ConnectionError("refused")
        except ConnectionError as error:
            raise LookupError("no server") from error
        yield

    async def program(stepping: Stepping) -> int:
        watch = Uncancelled(stepping, asyncio.current_task())
        scope = handfast.Scope("s")
        try:
            raise KeyError("first choice")
        except KeyError:
            with pytest.raises(LookupError, match="no server") as caught:
                await scope.hold(unreachable())
        assert repr(caught.value.__cause__) == "ConnectionError('refused')"
        assert caught.value.__context__ is caught.value.__cause__
        assert caught.value.__cause__ is not None
        assert repr(caught.value.__cause__.__context__) == "KeyError('first choice')"
        assert handfast.split_errors(caught.value).operational == (caught.value,)
        assert (await scope.close()).clean
        return watch.most

    assert run_stepping(program) == 0


def test_a_resource_that_cancels_itself_while_entering_does_not_cancel_its_holder() -> None:
    """S3.2"""

    class Confused:
        async def __aenter__(self) -> None:
            raise asyncio.CancelledError

        async def __aexit__(self, *_: object) -> None: ...

    async def program(stepping: Stepping) -> None:
        scope = long_lived()
        with pytest.raises(
            handfast.errors.HandfastError, match=r"entering .*Confused was cancelled by"
        ):
            await scope.hold(Confused())
        assert (await scope.close()).clean

    run_stepping(program)


def test_an_error_at_the_very_moment_of_entering_is_raised_to_the_holder() -> None:
    """S3.6: its own time-out strikes before the holder has it in hand."""

    @asynccontextmanager
    async def short_lived() -> AsyncIterator[None]:
        async with asyncio.timeout(0):
            yield

    async def program(stepping: Stepping) -> str:
        scope = long_lived()
        end = await outcome(scope.hold, short_lived())
        assert (await scope.close()).clean
        return end

    assert run_stepping(program) == "TimeoutError"


def test_a_resource_that_fails_at_once_is_raised_to_the_holder(kind: str) -> None:
    """With an eager task factory the owner has ended before its holder has it in hand."""

    class Broken:
        async def __aenter__(self) -> None:
            raise LookupError("no server")

        async def __aexit__(self, *_: object) -> None: ...

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            with pytest.raises(LookupError, match="no server"):
                await scope.hold(Broken())
            assert len(scope) == 0

    run_on(kind, main())


def test_a_resource_that_is_entered_at_once_is_left_in_its_owner(kind: str) -> None:
    """S3.1: with an eager task factory it is held before the holder has its owner in hand."""
    life = Life(pause=0.0)

    class Prompt:
        async def __aenter__(self) -> None:
            life.enter()

        async def __aexit__(self, *_: object) -> None:
            await life.clean_up()

    async def main() -> None:
        async with handfast.Scope("s") as scope:
            await scope.hold(Prompt())
        life.check()
        assert life.ended == 1

    run_on(kind, main())


@pytest.mark.parametrize("by", ["scope", "somebody"])
def test_an_owner_that_is_cancelled_before_its_first_step_enters_nothing(by: str) -> None:
    """S3.1: a failure in the same turn closes the scope; or somebody cancels the owner."""

    async def program(stepping: Stepping) -> str:
        life = Life()
        scope = handfast.Scope("s", on_failure="cancel")

        async def fail() -> None:
            if by == "scope":
                raise ValueError
            scope.tasks[-1].cancel()

        holder = asyncio.create_task(outcome(scope.hold, resource(life)))
        scope.spawn(fail())
        await asyncio.wait({holder})
        assert life.owner is None
        await scope.close()
        return holder.result()

    assert run_stepping(program) == ("ScopeClosed" if by == "scope" else "HandfastError")


def test_each_of_several_resources_is_released_by_its_own_value(kind: str) -> None:
    async def main() -> None:
        scope = long_lived()
        lives = [Life(pause=0.0) for _ in range(3)]
        for life in lives:
            await scope.hold(resource(life))
        assert await scope.release(lives[1])
        assert [life.ended for life in lives] == [0, 1, 0]
        assert not await scope.release("something else")
        assert (await scope.close()).clean

    run_on(kind, main())


def test_an_anyio_time_out_bounds_a_release_and_the_release_is_patient() -> None:
    """S3.4: anyio cancels again at every turn of the loop. No timer may be needed to end that."""

    async def program(stepping: Stepping) -> None:
        life = Life(pause=0.0)
        scope = long_lived()
        value = await scope.hold(resource(life))
        with anyio.CancelScope() as inner:
            inner.cancel()
            await scope.release(value)
        assert inner.cancelled_caught
        life.check()
        await scope.close()

    run_stepping(program)


# --- input -------------------------------------------------------------------------------------


async def connect() -> None: ...


@pytest.mark.parametrize(
    ("thing", "hint"),
    [
        (lambda: 3, "not 3"),
        (lambda: Entering, "call it"),
        (lambda: connect(), "await it first"),
    ],
)
def test_what_is_no_context_manager_is_refused_at_once(thing: Callable[[], Any], hint: str) -> None:
    async def program(stepping: Stepping) -> None:
        scope = long_lived()
        with pytest.raises(TypeError, match=hint):
            await scope.hold(thing())
        assert (await scope.close()).clean

    run_stepping(program)


@pytest.mark.parametrize(("timeout", "error"), [(-1, ValueError), ("soon", TypeError)])
def test_a_timeout_that_is_none_is_refused_at_once(timeout: Any, error: type[Exception]) -> None:
    async def program(stepping: Stepping) -> None:
        scope = long_lived()
        with pytest.raises(error, match="timeout"):
            await scope.hold(resource(Life()), timeout=timeout)
        assert (await scope.close()).clean

    run_stepping(program)


def test_a_closed_scope_holds_nothing_and_another_loop_gets_an_error() -> None:
    async def program(stepping: Stepping) -> None:
        scope = long_lived()
        value = await scope.hold(resource(Life()))

        def elsewhere(act: Callable[[], Coroutine[Any, Any, object]]) -> str:
            return asyncio.run(outcome(act))

        for act in (lambda: scope.release(value), lambda: scope.hold(resource(Life()))):
            assert await asyncio.to_thread(elsewhere, act) == "WrongLoop"
        await scope.close()
        assert not await scope.release(value)
        assert await outcome(scope.hold, resource(Life())) == "ScopeClosed"

    run_stepping(program)


def test_a_resource_cannot_wait_for_its_own_end() -> None:
    scopes: list[handfast.Scope] = []
    ends: list[str] = []

    @asynccontextmanager
    async def selfish() -> AsyncIterator[str]:
        yield "it"
        ends.append(await outcome(scopes[0].release, "it"))

    async def program(stepping: Stepping) -> None:
        scopes.append(long_lived())
        await scopes[0].hold(selfish())
        assert (await scopes[0].close()).clean

    run_stepping(program)
    assert ends == ["RuntimeError"]


def test_a_task_factory_that_fails_leaves_no_trace() -> None:
    async def program(stepping: Stepping) -> None:
        scope = long_lived()

        def broken(*_: object, **__: object) -> Any:
            raise OSError("no more tasks")

        stepping.loop.set_task_factory(broken)
        with pytest.raises(OSError, match="no more tasks"):
            await scope.hold(resource(Life()))
        stepping.loop.set_task_factory(None)
        assert len(scope) == 0
        assert (await scope.close()).clean

    run_stepping(program)
