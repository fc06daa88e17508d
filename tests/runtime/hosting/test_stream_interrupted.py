"""A17: an error that is on its way out is not lost if the stream is closed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import pytest

import handfast
from tests.runtime.hosting.resources import outcome
from tests.support.stepping import Stepping, cancel_everywhere, run_on, run_stepping

Items: TypeAlias = AsyncGenerator[int, None]


class Work(Exception):
    pass


async def clean_up() -> None:
    try:
        await asyncio.sleep(60)
    except OSError:  # it has nothing to do with the error outside
        pass


@asynccontextmanager
async def block() -> AsyncIterator[None]:
    try:
        yield
    finally:
        await clean_up()


class Block:
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None:
        await clean_up()


# --- the error is on its way out ---------------------------------------------------------------


async def in_finally() -> Items:
    try:
        yield 1
        raise Work
    finally:
        await clean_up()


async def in_finally_after_other_handlers() -> Items:
    try:
        yield 1
        raise Work
    except LookupError:
        await asyncio.sleep(1)
    finally:
        if True:
            await clean_up()


async def in_finally_after_a_failing_handler() -> Items:
    try:
        yield 1
        raise LookupError
    except LookupError:
        raise Work from None
    finally:
        await clean_up()


async def at_the_end_of_a_block() -> Items:
    async with Block():
        yield 1
        raise Work


async def at_the_end_of_a_block_from_a_generator() -> Items:
    async with block():
        yield 1
        raise Work


async def in_a_handler_that_raises_again() -> Items:
    try:
        yield 1
        raise Work
    except Work:
        await clean_up()
        raise


async def _fail() -> None:
    try:
        raise Work
    finally:
        await clean_up()


async def in_a_call() -> Items:
    yield 1
    try:
        await _fail()
    except (OSError, asyncio.InvalidStateError):
        await asyncio.sleep(1)


async def in_a_case() -> Items:
    match 1:
        case 1:
            try:
                yield 1
                raise Work
            finally:
                await clean_up()


# --- the error was caught, or will be ----------------------------------------------------------


async def waiting_to_try_again() -> Items:
    while True:
        try:
            yield 1
            raise Work
        except Work:
            await asyncio.sleep(60)


async def waiting_in_a_block_to_try_again() -> Items:
    while True:
        try:
            yield 1
            raise Work
        except Exception:
            async with asyncio.timeout(90):
                await asyncio.sleep(60)


async def caught_outside_of_the_block() -> Items:
    while True:
        try:
            async with block():
                yield 1
                raise Work
        except (LookupError, Work):
            pass


async def caught_outside_of_the_call() -> Items:
    while True:
        yield 1
        try:
            await _fail()
        except Work:
            pass


async def caught_by_any_handler() -> Items:
    kinds = {"work": Work}
    yield 1
    try:
        await _fail()
    except kinds["work"]:
        pass


async def suppressed() -> Items:
    while True:
        yield 1
        with suppress(Work):
            await _fail()


async def raised_again_on_a_condition() -> Items:
    for attempt in range(9):
        try:
            yield 1
            raise Work
        except Work:
            await asyncio.sleep(60)
            if attempt == 3:
                raise


RAISED = [
    in_finally,
    in_finally_after_other_handlers,
    in_finally_after_a_failing_handler,
    at_the_end_of_a_block,
    at_the_end_of_a_block_from_a_generator,
    in_a_call,
    in_a_case,
]
CAUGHT = [
    # It is not certain that they raise it: an `except` clause may end it.
    in_a_handler_that_raises_again,
    waiting_to_try_again,
    waiting_in_a_block_to_try_again,
    caught_outside_of_the_block,
    caught_outside_of_the_call,
    caught_by_any_handler,
    suppressed,
    raised_again_on_a_condition,
]


async def leave_meanwhile(items: Items) -> None:
    async with handfast.stream(items) as numbers:
        await anext(numbers)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.001):
                await anext(numbers)


@pytest.mark.parametrize("items", RAISED)
def test_an_error_on_its_way_out_is_raised_when_the_block_is_left(
    any_kind: str, items: Callable[[], Items]
) -> None:
    """A17."""

    async def main() -> None:
        with pytest.raises(Work) as caught:
            await leave_meanwhile(items())
        assert handfast.split_errors(caught.value).operational[0] is caught.value

    run_on(any_kind, main())


@pytest.mark.parametrize("items", CAUGHT)
def test_an_error_that_is_caught_is_not_raised(any_kind: str, items: Callable[[], Items]) -> None:
    run_on(any_kind, leave_meanwhile(items()))


def test_a_cancel_of_the_consumer_at_any_step_does_not_lose_the_error() -> None:
    """A17, A16: once it was raised, either the error or both arrive."""

    async def program(stepping: Stepping) -> tuple[bool, str]:
        raised = False

        async def failing() -> Items:
            nonlocal raised
            try:
                yield 1
                await asyncio.sleep(0)
                raised = True
                raise Work
            finally:
                await asyncio.sleep(1)

        async def consume() -> None:
            async with handfast.stream(failing()) as items:
                async for _ in items:
                    pass

        task = stepping.victim(asyncio.create_task(outcome(consume)))
        await asyncio.wait({task})
        return raised, "cancelled" if task.cancelled() else task.result()

    runs = list(cancel_everywhere(program))
    assert {result for raised, result in runs if raised} == {"Work"}
    assert {result for raised, result in runs if not raised} == {"cancelled"}
    assert len([raised for raised, _ in runs if raised]) > 3


def test_the_error_is_not_lost_if_other_code_cancels_the_owner() -> None:
    """A17."""

    async def program(_: Stepping) -> None:
        owner: asyncio.Task[object] | None = None

        async def failing() -> Items:
            nonlocal owner
            owner = asyncio.current_task()
            try:
                yield 1
                raise Work
            finally:
                await asyncio.sleep(1)

        async with handfast.stream(failing()) as items:
            await anext(items)
            request = asyncio.create_task(anext(items))
            await asyncio.sleep(0.5)
            assert owner is not None
            owner.cancel()
            with pytest.raises(Work):
                await request

    run_stepping(program)


def test_an_error_of_code_without_a_source_is_taken_for_one_that_was_caught() -> None:
    source = """
async def items():
    while True:
        try:
            yield 1
            raise LookupError
        except LookupError:
            await asyncio.sleep(60)
"""
    names: dict[str, Any] = {"asyncio": asyncio}
    exec(source, names)
    asyncio.run(leave_meanwhile(names["items"]()))
