"""Which resource `release` leaves, and plain context managers in `hold`. A7."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import handfast
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping


class Connection:
    """Gives a value of its own choice, and notes in which task it was entered and left."""

    def __init__(self, value: Any = None) -> None:
        self.value = value
        self.tasks: list[asyncio.Task[Any] | None] = []

    async def __aenter__(self) -> Any:
        self.tasks.append(asyncio.current_task())
        return self.value

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        self.tasks.append(asyncio.current_task())

    @property
    def left(self) -> bool:
        return len(self.tasks) == 2 and self.tasks[0] is self.tasks[1]


class Lock:
    """A plain context manager with a value."""

    def __init__(self, log: list[str], *, fails: bool = False) -> None:
        self.log = log
        self.fails = fails

    def __enter__(self) -> str:
        self.log.append("entered")
        return "locked"

    def __exit__(self, *_: object) -> None:
        self.log.append("left")
        if self.fails:
            raise OSError("unlock")


@pytest.mark.parametrize("value", [None, 1, "same"])
def test_release_leaves_the_resource_that_it_was_given(any_kind: str, value: Any) -> None:
    """A7: also if all of them have None, or equal values, as their value."""

    async def main() -> None:
        async with handfast.Scope("service") as scope:
            connections = [Connection(value) for _ in range(4)]
            for connection in connections:
                await scope.hold(connection)
            for number in (2, 0, 3):
                assert await scope.release(connections[number])
                assert connections[number].left
                assert not await scope.release(connections[number])
            assert [c.left for c in connections] == [True, False, True, True]
        assert connections[1].left

    run_on(any_kind, main())


def test_a_value_that_does_not_say_which_is_refused() -> None:
    """A7: nothing is left then."""

    async def main(_: Stepping) -> None:
        async with handfast.Scope("service") as scope:
            first, second, other = Connection("same"), Connection("same"), Connection()
            for connection in (first, second, other):
                await scope.hold(connection)
            with pytest.raises(
                ValueError, match=r"release\('same'\) .* pass the one that was given"
            ):
                await scope.release("same")
            with pytest.raises(ValueError, match=r"release\(None\) does not say which"):
                await scope.release(None)
            assert not any(c.left for c in (first, second, other))
            assert await scope.release(second)
            assert await scope.release("same")
            assert first.left

    run_stepping(main)


def test_a_resource_that_is_held_twice_is_released_from_the_newer_hold_on() -> None:
    """A7"""
    log: list[str] = []

    async def main(_: Stepping) -> None:
        async with handfast.Scope("service") as scope:
            lock = Lock(log)
            await scope.hold(lock)
            await scope.hold(lock)
            assert [await scope.release(lock) for _ in range(3)] == [True, True, False]

    run_stepping(main)
    assert log == ["entered", "entered", "left", "left"]


def test_a_resource_comes_before_a_value_that_is_the_same_object() -> None:
    """A7: what one resource gives may be another resource."""

    async def main(_: Stepping) -> None:
        async with handfast.Scope("service") as scope:
            inner = Connection("inner")
            outer = Connection(inner)
            await scope.hold(inner)
            assert await scope.hold(outer) is inner
            assert await scope.release(inner)
            assert (inner.left, outer.left) == (True, False)

    run_stepping(main)


def test_a_plain_context_manager_is_held(any_kind: str) -> None:
    """Entered at once, left when the scope closes or at its release, in reverse order."""
    log: list[str] = []

    @contextmanager
    def opened(name: str) -> Iterator[str]:
        log.append(f"open {name}")
        yield name
        log.append(f"close {name}")

    async def main() -> None:
        async with handfast.Scope("service") as scope:
            values = [await scope.hold(opened(name)) for name in "abc"]
            assert values == ["a", "b", "c"]
            assert await scope.release(values[1])
            log.append("body")

    run_on(any_kind, main())
    assert log == ["open a", "open b", "open c", "close b", "body", "close c", "close a"]


def test_a_manager_that_is_both_is_entered_as_an_async_one() -> None:
    """aiohttp's session has a `with` that only raises."""

    class Session(Connection):
        def __enter__(self) -> None:
            raise TypeError("Use async with instead")

        def __exit__(self, *_: object) -> None:
            raise TypeError("Use async with instead")

    async def main(_: Stepping) -> bool:
        session = Session()
        async with handfast.Scope("service") as scope:
            await scope.hold(session)
        return session.left

    assert run_stepping(main)


def test_an_error_of_a_plain_exit_is_raised_by_release_and_by_the_scope() -> None:
    """S3.6: as a clean-up error."""

    async def main(_: Stepping) -> None:
        lock = Lock([], fails=True)
        scope = handfast.Scope("service", on_failure="report")
        await scope.hold(lock)
        with pytest.raises(OSError, match="unlock"):
            await scope.release(lock)
        await scope.hold(lock)
        assert [str(e) for e in (await scope.close()).cleanup_errors] == ["unlock"]

    run_stepping(main)


def test_a_plain_manager_is_left_wherever_its_holder_is_cancelled() -> None:
    """S3.5: in as often as out, at every step."""

    async def program(stepping: Stepping) -> list[str]:
        log: list[str] = []

        async def use() -> None:
            async with handfast.Scope("service") as scope:
                lock = Lock(log)
                await scope.hold(lock)
                await asyncio.sleep(1)
                await scope.release(lock)

        await asyncio.wait({stepping.victim(asyncio.create_task(use()))})
        return log

    runs = list(cancel_everywhere(program)) + list(cancel_everywhere(program, times=2))
    assert len(runs) > 15
    assert {tuple(log) for log in runs} <= {(), ("entered", "left")}
