"""Errors that were never retrieved (HF601), tasks that were collected while pending (HF101)."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from handfast._census import LiveObject, owned_by, recording, take
from handfast._census.kinds import unread_errors as errors
from tests.support.stepping import loop_kinds, new_loop


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # pytest keeps what was logged, and with it the frames of errors.
    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", True)
    with recording():
        yield


@pytest.fixture(params=loop_kinds())
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """On a loop without an exception handler."""
    with asyncio.Runner(loop_factory=lambda: new_loop(request.param)) as runner:
        yield runner


async def fail() -> None:
    raise ValueError("wrong\nwith more to say")  # raised here


def unread(loop: asyncio.AbstractEventLoop) -> list[LiveObject]:
    return list(take(["errors"], loop=loop).objects)


def test_an_unread_error_is_listed_while_its_task_exists(
    runner: asyncio.Runner,
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(fail(), name="poll")  # started here
        await asyncio.wait([task])
        [live] = unread(loop)
        assert live.target is not None
        assert (live.check, live.code) == ("errors", "HF601")
        assert live.what == "ValueError: wrong in task 'poll', never retrieved"
        [line] = live.waiting_at()
        assert line.startswith("raised at ")
        assert line.endswith(f":{fail.__code__.co_firstlineno + 1} in fail")
        assert live.creation is not None
        assert live.creation.origin.source.endswith("# started here")
        assert live.owner == "the test"
        # Listing it has not retrieved it.
        assert not live.ended()
        assert [each.key for each in unread(loop)] == [live.key]
        assert isinstance(task.exception(), ValueError)
        assert live.ended()
        assert unread(loop) == []

    with owned_by("the test"):
        runner.run(main())


def test_an_unread_error_is_listed_when_its_task_is_gone(runner: asyncio.Runner) -> None:
    async def main() -> weakref.ref[Any]:
        task = asyncio.create_task(fail(), name="poll")  # started here
        await asyncio.wait([task])
        return weakref.ref(task)

    with owned_by("the test"):
        gone = runner.run(main())
    gc.collect()
    assert gone() is None
    [live] = unread(runner.get_loop())
    assert live.target is None
    assert live.code == "HF601"
    assert live.what == "ValueError: wrong in task 'poll', never retrieved"
    assert live.waiting_at()[0].endswith(" in fail")
    assert live.creation is not None
    assert live.creation.origin.source.endswith("# started here")
    assert live.owner == "the test"
    assert not live.ended()
    assert unread(runner.get_loop())[0].key == live.key


def test_an_error_of_a_future_is_listed_when_that_is_gone(runner: asyncio.Runner) -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(ValueError("wrong"))

    runner.run(main())
    gc.collect()
    [live] = unread(runner.get_loop())
    assert live.what == "ValueError: wrong in a future, never retrieved"
    assert live.waiting_at() == ()


def test_a_task_that_is_collected_while_pending_is_listed(runner: asyncio.Runner) -> None:
    async def orphan() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        asyncio.create_task(orphan(), name="poll")  # started here
        await asyncio.sleep(0)
        gc.collect()

    runner.run(main())
    [live] = unread(runner.get_loop())
    assert (live.code, live.what) == ("HF101", "task 'poll', collected while it was pending")
    assert live.creation is not None
    assert live.creation.origin.source.endswith("# started here")


def test_a_program_with_an_exception_handler_has_read_the_error(runner: asyncio.Runner) -> None:
    heard: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(context["message"]))
        await asyncio.wait([asyncio.create_task(fail())])

    runner.run(main())
    gc.collect()
    assert heard == ["Task exception was never retrieved"]
    assert unread(runner.get_loop()) == []


def test_other_messages_to_the_exception_handler_are_not_listed(runner: asyncio.Runner) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "something else"})

    runner.run(main())
    assert unread(runner.get_loop()) == []


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_without_text_is_listed_by_its_name() -> None:
    assert errors.error_text(Wordless()) == "Wordless"
    assert errors.error_text(ValueError()) == "ValueError"
    assert errors.error_text(None) == "an error"
    assert errors.raised_at(None) is None


def test_what_was_reported_keeps_no_loop_alive() -> None:
    async def main() -> weakref.ref[Any]:
        await asyncio.wait([asyncio.create_task(fail(), name="of a loop that is gone")])
        return weakref.ref(asyncio.get_running_loop())

    gone = asyncio.run(main())
    gc.collect()
    assert gone() is None
    assert any("of a loop that is gone" in live.what for live in take(["errors"]).objects)


def test_a_reported_error_is_not_kept_alive() -> None:
    class Marked:
        """A local variable in the frame of the task that fails."""

    refs: list[weakref.ref[Any]] = []

    async def marked() -> None:
        here = Marked()
        refs.append(weakref.ref(here))
        raise ValueError

    async def main() -> None:
        task = asyncio.create_task(marked())
        await asyncio.wait([task])
        assert take(loop=asyncio.get_running_loop()).objects

    asyncio.run(main())
    gc.collect()
    assert refs[0]() is None


def test_what_was_reported_is_dropped_when_the_recording_ends() -> None:
    async def main() -> None:
        asyncio.get_running_loop().create_future().set_exception(ValueError("forgotten"))

    asyncio.run(main())
    gc.collect()
    assert any("forgotten" in live.what for live in take(["errors"]).objects)
    errors.KIND.clear()
    assert not any("forgotten" in live.what for live in take(["errors"]).objects)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("collected", [False, True])
def test_an_error_that_leaves_the_loop_is_not_lost(
    loop_that_is_run: asyncio.AbstractEventLoop, error: type[BaseException], collected: bool
) -> None:
    async def leave() -> None:
        raise error(2)

    loop = loop_that_is_run
    kept = [loop.create_task(leave())]
    with pytest.raises(error):
        loop.run_forever()
    if collected:
        kept.clear()
        gc.collect()
    assert unread(loop) == []


@pytest.fixture(params=loop_kinds())
def loop_that_is_run(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    loop = new_loop(request.param)
    yield loop
    loop.close()
