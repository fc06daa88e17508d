"""Errors that nobody has read (HF601), tasks that were collected while pending (HF101)."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.census import Thing, errors, owned_by, recording, take
from holdfast.census.errors import Loss, Unread
from tests.stepping import loop_kinds, new_loop


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # pytest keeps what was logged, and with it the frames of errors.
    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", True)
    with recording():
        yield


@pytest.fixture(params=loop_kinds())
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """On a loop that tells its errors to nobody else than the log."""
    with asyncio.Runner(loop_factory=lambda: new_loop(request.param)) as runner:
        yield runner


async def fail() -> None:
    raise ValueError("wrong\nwith more to say")  # raised here


def told(loop: asyncio.AbstractEventLoop) -> list[Thing]:
    return list(take(["errors"], loop=loop).things)


def test_an_error_that_nobody_has_read_is_told_while_its_task_is_there(
    runner: asyncio.Runner,
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(fail(), name="poll")  # started here
        await asyncio.wait([task])
        [thing] = told(loop)
        assert isinstance(thing, Unread)
        assert (thing.check, thing.code) == ("errors", "HF601")
        assert thing.what == "ValueError: wrong in task 'poll', read by nobody"
        [line] = thing.stands()
        assert line.startswith("raised at ")
        assert line.endswith(f":{fail.__code__.co_firstlineno + 1} in fail")
        assert thing.birth is not None
        assert thing.birth.origin.source.endswith("# started here")
        assert thing.owner == "the test"
        # Looking at it has not read it.
        assert not thing.over()
        assert [each.key for each in told(loop)] == [thing.key]
        assert isinstance(task.exception(), ValueError)
        assert thing.over()
        assert told(loop) == []

    with owned_by("the test"):
        runner.run(main())


def test_an_error_whose_task_is_gone_is_told_in_words(runner: asyncio.Runner) -> None:
    async def main() -> weakref.ref[Any]:
        task = asyncio.create_task(fail(), name="poll")  # started here
        await asyncio.wait([task])
        return weakref.ref(task)

    with owned_by("the test"):
        gone = runner.run(main())
    gc.collect()
    assert gone() is None
    [thing] = told(runner.get_loop())
    assert isinstance(thing, Loss)
    assert thing.code == "HF601"
    assert thing.what == "ValueError: wrong in task 'poll', read by nobody"
    assert thing.stands()[0].endswith(" in fail")
    assert thing.birth is not None
    assert thing.birth.origin.source.endswith("# started here")
    assert thing.owner == "the test"
    assert not thing.over()
    assert told(runner.get_loop())[0].key == thing.key


def test_an_error_of_a_future_is_told_when_that_is_gone(runner: asyncio.Runner) -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(ValueError("wrong"))

    runner.run(main())
    gc.collect()
    [thing] = told(runner.get_loop())
    assert thing.what == "ValueError: wrong in a future, read by nobody"
    assert thing.stands() == ()


def test_a_task_that_is_collected_while_pending_is_told(runner: asyncio.Runner) -> None:
    async def orphan() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        asyncio.create_task(orphan(), name="poll")  # started here
        await asyncio.sleep(0)
        gc.collect()

    runner.run(main())
    [thing] = told(runner.get_loop())
    assert (thing.code, thing.what) == ("HF101", "task 'poll', collected while it was pending")
    assert thing.birth is not None
    assert thing.birth.origin.source.endswith("# started here")


def test_a_program_that_handles_what_the_loop_is_told_has_read_it(runner: asyncio.Runner) -> None:
    heard: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(context["message"]))
        await asyncio.wait([asyncio.create_task(fail())])

    runner.run(main())
    gc.collect()
    assert heard == ["Task exception was never retrieved"]
    assert told(runner.get_loop()) == []


def test_other_things_that_the_loop_is_told_are_no_losses(runner: asyncio.Runner) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "something else"})

    runner.run(main())
    assert told(runner.get_loop()) == []


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_without_words_is_told_by_its_name() -> None:
    assert errors.in_words(Wordless()) == "Wordless"
    assert errors.in_words(ValueError()) == "ValueError"
    assert errors.in_words(None) == "an error"
    assert errors.raised_at(None) is None


def test_what_was_overheard_keeps_no_loop() -> None:
    async def main() -> weakref.ref[Any]:
        await asyncio.wait([asyncio.create_task(fail(), name="of a loop that is gone")])
        return weakref.ref(asyncio.get_running_loop())

    gone = asyncio.run(main())
    gc.collect()
    assert gone() is None
    assert any("of a loop that is gone" in thing.what for thing in take(["errors"]).things)


def test_an_error_and_its_frames_are_kept_by_nobody_once_they_are_gone() -> None:
    class Marked:
        """Stands in the frame of the task that fails."""

    refs: list[weakref.ref[Any]] = []

    async def marked() -> None:
        here = Marked()
        refs.append(weakref.ref(here))
        raise ValueError

    async def main() -> None:
        task = asyncio.create_task(marked())
        await asyncio.wait([task])
        assert take(loop=asyncio.get_running_loop()).things

    asyncio.run(main())
    gc.collect()
    assert refs[0]() is None


def test_what_was_told_is_forgotten_when_recording_ends() -> None:
    async def main() -> None:
        asyncio.get_running_loop().create_future().set_exception(ValueError("forgotten"))

    asyncio.run(main())
    gc.collect()
    assert any("forgotten" in thing.what for thing in take(["errors"]).things)
    errors.forget()
    assert not any("forgotten" in thing.what for thing in take(["errors"]).things)
