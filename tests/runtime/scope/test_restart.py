"""Services that are started again: policy, window and back-off, in virtual time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import handfast
from handfast import Restart, Scope
from handfast.errors import RestartLimit
from handfast.types import TaskEnd
from tests.support.failures import errors_into
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


class Service:
    """Ends each of its runs as given, and notes when each began."""

    def __init__(self, *ends: BaseException | None, lasts: float = 0.0) -> None:
        self._ends = list(ends)
        self._lasts = lasts
        self.starts: list[float] = []

    async def __call__(self) -> None:
        self.starts.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self._lasts)
        if not self._ends:
            await forever()
        end = self._ends.pop(0)
        if end is not None:
            raise end


def errors(*texts: str) -> list[ValueError]:
    return [ValueError(text) for text in texts]


def serve(service: Callable[[], Any], restart: Restart | None, **options: Any) -> list[str]:
    """Serve for an hour of virtual time; what was reported to the handler."""
    reported: list[str] = []

    async def main(_: Stepping) -> None:
        scope = Scope("services", on_failure=lambda end: reported.append(str(end.error)), **options)
        scope.supervise(service, restart=restart, name="service")
        await asyncio.sleep(3600)
        await scope.close()

    run_stepping(main)
    return reported


def test_by_default_a_service_is_started_again_after_an_error_only() -> None:
    """And ends when it returns."""
    service = Service(*errors("once"), None)
    assert serve(service, None) == ["once"]
    assert len(service.starts) == 2


def test_always_means_also_after_it_has_returned() -> None:
    """There is no error to tell then."""
    service = Service(None, *errors("once"), None)
    assert serve(service, Restart(when="always", intensity=5)) == ["once"]
    assert len(service.starts) == 4


def test_never_means_never() -> None:
    """Its error is a failure of the scope like any other."""
    service = Service(*errors("once"))
    assert serve(service, Restart(when="never")) == ["once"]
    assert len(service.starts) == 1
    assert serve(Service(None), Restart(when="never")) == []


def test_the_pause_doubles_up_to_the_ceiling() -> None:
    """Counted within the window."""
    service = Service(*errors(*"abcdefg"))
    serve(service, Restart(intensity=9, period=1000, backoff=1, ceiling=10))
    pauses = [b - a for a, b in zip(service.starts, service.starts[1:], strict=False)]
    assert pauses == [1, 2, 4, 8, 10, 10, 10]


def test_the_pause_never_overflows() -> None:
    """However many restarts there have been."""
    assert Restart(ceiling=7).pause(10_000) == 7
    assert Restart(backoff=0).pause(10_000) == 0


def test_restarts_that_lie_far_back_do_not_count() -> None:
    """Two in ten seconds are allowed; one every six seconds goes on for ever, with short pauses."""
    service = Service(*errors(*"abcdefgh"), lasts=6)
    reported = serve(service, Restart(intensity=2, period=10, backoff=0.5))
    assert reported == list("abcdefgh")
    pauses = [b - a - 6 for a, b in zip(service.starts, service.starts[1:], strict=False)]
    assert pauses == [0.5, 1.0] + [1.0] * 6


def test_the_window_ends_exactly_after_its_period() -> None:
    """A restart that is `period` seconds old is out of it."""
    service = Service(*errors("a", "b", "c"), lasts=10)
    assert serve(service, Restart(intensity=1, period=10, backoff=0)) == ["a", "b", "c"]
    service = Service(*errors("a", "b"), lasts=9.5)
    reported = serve(service, Restart(intensity=1, period=10, backoff=0))
    assert reported[0] == "a"
    assert reported[1].startswith("service 'service' ended 2 times within 10 s")


@pytest.mark.parametrize("intensity", [0, 1, 3])
def test_one_more_than_the_intensity_is_a_failure_of_the_scope(intensity: int) -> None:
    """RestartLimit, with the last error as its cause; the siblings are cancelled."""
    ends = errors(*(str(n) for n in range(intensity + 1)))
    service = Service(*ends)

    async def main(stepping: Stepping) -> BaseException:
        reported: list[dict[str, Any]] = []
        stepping.loop.set_exception_handler(lambda _, context: reported.append(context))
        with pytest.raises(ExceptionGroup) as caught:
            async with Scope("services") as scope:
                scope.supervise(service, restart=Restart(intensity=intensity), name="service")
                sibling = scope.spawn(forever())
                await forever()
        assert sibling.cancelled()
        assert [context["exception"] for context in reported] == ends[:-1]
        (limit,) = caught.value.exceptions
        return limit

    limit = run_stepping(main)
    assert isinstance(limit, RestartLimit)
    assert f"'service' ended {intensity + 1} times within 60 s" in str(limit)
    assert limit.__cause__ is ends[-1]
    assert any("created at" in note for note in limit.__notes__)


def test_a_service_that_returns_too_often_gives_up_without_a_cause() -> None:
    """With "always"."""
    reported = serve(Service(*[None] * 9), Restart(when="always", intensity=2))
    assert reported == [
        "service 'service' ended 3 times within 60 s, and is not started again; "
        "its Restart allows 2"
    ]


@pytest.mark.parametrize("on_failure", ["cancel", "report"])
def test_no_error_of_a_restart_is_lost(on_failure: Any) -> None:
    """Without a handler each goes to the loop's, with the origin of the service."""

    async def main(stepping: Stepping) -> list[dict[str, Any]]:
        reported: list[dict[str, Any]] = []
        stepping.loop.set_exception_handler(lambda _, context: reported.append(context))
        scope = Scope("services", on_failure=on_failure)
        scope.supervise(Service(*errors("a", "b")), name="service")
        await asyncio.sleep(10)
        await scope.close()
        return reported

    reported = run_stepping(main)
    assert [str(context["exception"]) for context in reported] == ["a", "b"]
    assert {context["message"] for context in reported} == {
        "service 'service' failed and is started again"
    }
    assert "in service 'service' of scope 'services'" in reported[0]["exception"].__notes__[0]
    assert (
        f"created at {handfast.types.Origin.here().filename}"[:8]
        in reported[0]["exception"].__notes__[0]
    )
    assert "restart 2 of 3 follows" in reported[1]["exception"].__notes__[0]


def test_a_handler_that_fails_does_not_end_the_service() -> None:
    """Its error goes to the loop's exception handler."""

    def broken(end: TaskEnd) -> None:
        raise OSError("handler")

    async def main(stepping: Stepping) -> tuple[list[str], int]:
        reported: list[str] = []
        stepping.loop.set_exception_handler(
            lambda _, context: reported.append(repr(context["exception"]))
        )
        scope = Scope("services", on_failure=broken)
        service = Service(*errors("a"))
        scope.supervise(service)
        await asyncio.sleep(10)
        await scope.close()
        return reported, len(service.starts)

    assert run_stepping(main) == (["OSError('handler')"], 2)


def test_a_service_does_not_keep_the_scope_open(kind: str) -> None:
    """Once all else has ended it is cancelled."""
    ended: list[str] = []

    async def service() -> None:
        try:
            await forever()
        finally:
            ended.append("service")

    async def main() -> None:
        async with Scope("services") as scope:
            task = scope.supervise(service)
            scope.spawn(asyncio.sleep(0.001))
        assert task.cancelled()
        assert len(scope) == 0

    run_on(kind, main())
    assert ended == ["service"]


def test_a_service_takes_no_place_of_a_limit() -> None:
    """It would take it for ever."""

    async def main(_: Stepping) -> str:
        async with Scope("services", limit=1) as scope:
            scope.supervise(forever)
            return await scope.spawn(asyncio.sleep(1, "had its turn"))

    assert run_stepping(main) == "had its turn"


def test_a_cancel_at_every_step_ends_the_service() -> None:
    """In a run, in its clean-up, in the pause: it is not started again after that."""
    steps = 0
    for started_after in cancel_everywhere(_cancelled_service):
        assert started_after == 0
        steps += 1
    assert steps > 10


async def _cancelled_service(stepping: Stepping) -> int:
    starts: list[bool] = []
    reported: list[BaseException] = []

    async def service() -> None:
        starts.append(stepping.cancelled)
        try:
            await asyncio.sleep(1)
            raise ValueError("expected")
        finally:
            await asyncio.sleep(0)

    scope = Scope("services", on_failure=errors_into(reported))
    task = stepping.victim(scope.supervise(service, restart=Restart(intensity=2, backoff=1)))
    await asyncio.wait({task})
    await scope.close()
    assert all(str(error).startswith(("expected", "service")) for error in reported)
    return sum(starts)


@pytest.mark.parametrize("when", ["failure", "always"])
@pytest.mark.parametrize("end", ["fails", "swallows"])
def test_a_cancel_that_is_swallowed_or_covered_ends_the_service_too(when: Any, end: str) -> None:
    """It was cancelled, once: it is not cancelled again, and a close would wait in vain."""
    starts: list[float] = []

    async def service() -> None:
        starts.append(asyncio.get_running_loop().time())
        try:
            await forever()
        except asyncio.CancelledError:
            if end == "fails":
                raise ValueError("in clean-up") from None

    async def main(stepping: Stepping) -> handfast.types.CloseReport:
        stepping.loop.set_exception_handler(lambda *_: None)
        scope = Scope("services", on_failure="report")
        scope.supervise(service, restart=Restart(when=when))
        await asyncio.sleep(1)
        return await scope.close()

    report = run_stepping(main)
    assert starts == [0]
    assert report.stragglers == ()
    assert [str(error) for error in report.cleanup_errors] == (
        ["in clean-up"] if end == "fails" else []
    )


def test_a_service_that_waited_for_something_cancelled_is_started_again() -> None:
    """Nobody has cancelled the service itself."""
    starts: list[str] = []

    async def service() -> None:
        starts.append("start")
        if len(starts) == 1:
            waits_for = asyncio.get_running_loop().create_future()
            waits_for.cancel()
            await waits_for
        await forever()

    assert serve(service, None) == [""]
    assert len(starts) == 2


def test_what_ends_a_program_is_no_reason_to_start_again() -> None:
    """SystemExit flies through."""
    service = Service(SystemExit(3))

    async def main() -> None:
        async with Scope("services") as scope:
            scope.supervise(service)
            await forever()

    with pytest.raises(SystemExit):
        handfast.run(main)
    assert len(service.starts) == 1


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"when": "sometimes"}, ValueError, '"failure", "always" or "never", not \'sometimes\''),
        ({"intensity": -1}, ValueError, "intensity must be at least 0"),
        ({"intensity": 1.5}, TypeError, "intensity must be a whole number"),
        ({"intensity": True}, TypeError, "intensity must be a whole number"),
        ({"period": -1}, ValueError, "period must be"),
        ({"backoff": -1}, ValueError, "backoff must be"),
        ({"ceiling": float("nan")}, ValueError, "ceiling must be"),
    ],
)
def test_an_invalid_policy_is_refused(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    """At once, by name."""
    with pytest.raises(error, match=text):
        Restart(**options)


def test_what_is_no_function_is_refused_and_a_coroutine_is_closed() -> None:
    """No "never awaited"; on a closed scope neither."""

    async def main(_: Stepping) -> list[Any]:
        scope = Scope("services")
        coros = [forever(), forever()]
        with pytest.raises(TypeError, match="takes an async function, which it calls"):
            scope.supervise(coros[0])  # type: ignore[arg-type]
        await scope.close()
        with pytest.raises(TypeError, match="takes an async function, which it calls"):
            scope.supervise(coros[1])  # type: ignore[arg-type]
        with pytest.raises(handfast.errors.ScopeClosed, match=r"supervise\(forever\) refused"):
            scope.supervise(forever)
        return coros

    for coro in run_stepping(main):
        assert inspect.getcoroutinestate(coro) == inspect.CORO_CLOSED
