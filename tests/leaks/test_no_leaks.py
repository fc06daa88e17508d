"""`no_leaks`: a block that must leave nothing behind says what it leaves, and only that."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any

import pytest

import handfast
from handfast.leaks import Leak, LeakError, no_leaks

Block = Callable[[], Coroutine[Any, Any, Any]]


async def for_ever() -> None:
    # A timer of the loop keeps the task alive. One that waits for an event that nothing else refers
    # to may be collected at any moment, and is then another leak.
    await asyncio.sleep(3600)


async def stubborn(gate: asyncio.Event) -> None:
    while not gate.is_set():
        try:
            await gate.wait()
        except asyncio.CancelledError:
            pass


async def failing() -> None:
    raise ValueError("card declined")


async def rows() -> AsyncGenerator[int, None]:
    yield 1
    yield 2


def left_by(block: Block, **options: Any) -> tuple[Leak, ...]:
    """What the block leaves behind, on a loop of its own."""

    async def main() -> tuple[Leak, ...]:
        watched = no_leaks(**{"grace": 0.05, **options})
        with suppress(LeakError):
            async with watched:
                await block()
        return watched.leaks

    return asyncio.run(main())


def line_of(leak: Leak) -> str:
    assert leak.created_at is not None
    return leak.created_at.source


# --- what is found -------------------------------------------------------------------------------


def test_a_pending_task_is_named_with_its_creation_and_where_it_waits() -> None:
    async def block() -> None:
        asyncio.create_task(for_ever(), name="poll")

    (leak,) = left_by(block)
    assert (leak.code, leak.what) == ("HF102", "task 'poll' running for_ever")
    assert line_of(leak) == 'asyncio.create_task(for_ever(), name="poll")'
    assert leak.waiting_at[-1].endswith("in for_ever")


def test_leaked_tasks_are_cancelled() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def block() -> None:
        tasks.append(asyncio.create_task(for_ever()))

    left_by(block)
    assert tasks[0].cancelled()


def test_leaked_tasks_are_not_cancelled_on_request() -> None:
    async def main() -> None:
        with pytest.raises(LeakError):
            async with no_leaks(grace=0, cancel=False):
                task = asyncio.create_task(for_ever())
        assert not task.cancelling()
        task.cancel()

    asyncio.run(main())


def test_a_task_that_swallows_its_cancellation_is_reported_and_not_waited_for() -> None:
    async def main() -> str:
        gate = asyncio.Event()
        with pytest.raises(LeakError) as caught:
            async with no_leaks(grace=0):
                task = asyncio.create_task(stubborn(gate))
                await asyncio.sleep(0)
        gate.set()
        await asyncio.wait({task})
        return caught.value.leaks[0].code

    assert asyncio.run(main()) == "HF501"


def test_an_unread_error_is_found_while_its_task_is_held() -> None:
    held: list[asyncio.Task[None]] = []

    async def block() -> None:
        held.append(asyncio.create_task(failing()))
        await asyncio.sleep(0)

    (leak,) = left_by(block)
    assert leak.code == "HF601"
    assert "ValueError: card declined" in leak.what
    assert isinstance(held[0].exception(), ValueError)


def test_an_unread_error_is_found_when_its_task_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def block() -> None:
        asyncio.create_task(failing())
        await asyncio.sleep(0)

    (leak,) = left_by(block)
    assert leak.code == "HF601"
    assert line_of(leak) == "asyncio.create_task(failing())"


def test_a_timer_a_generator_and_a_server_are_found() -> None:
    kept: list[Any] = []

    async def block() -> None:
        kept.append(asyncio.get_running_loop().call_later(3600, print))
        kept.append(rows())
        await anext(kept[-1])
        kept.append(await asyncio.start_server(lambda reader, writer: None, "127.0.0.1"))

    async def main() -> list[str]:
        with pytest.raises(LeakError) as caught:
            async with no_leaks(grace=0.05):
                await block()
        kept[0].cancel()
        await kept[1].aclose()
        kept[2].close()
        return sorted(leak.code for leak in caught.value.leaks)

    assert asyncio.run(main()) == ["HF721", "HF731", "HF741"]


def test_threads_and_children_of_a_block_without_a_loop_are_found() -> None:
    gate = threading.Event()
    child: list[subprocess.Popen[bytes]] = []
    try:
        with pytest.raises(LeakError) as caught, no_leaks(grace=0.01):
            threading.Thread(target=gate.wait, name="worker").start()
            child.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1))
    finally:
        gate.set()
        child[0].communicate()
    assert sorted(leak.code for leak in caught.value.leaks) == ["HF701", "HF711"]


# --- what is not ---------------------------------------------------------------------------------


async def ends_in_the_grace() -> None:
    asyncio.create_task(asyncio.sleep(0.01))


async def joins_what_it_cancels() -> None:
    task = asyncio.create_task(for_ever())
    await asyncio.sleep(0)
    task.cancel()


async def uses_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))


async def uses_a_scope() -> None:
    async with handfast.Scope("workers") as scope:
        scope.spawn(asyncio.sleep(0))
        scope.supervise(for_ever)


async def uses_the_default_executor() -> None:
    await asyncio.to_thread(int)


async def breaks_out_of_a_generator() -> None:
    async with aclosing(rows()) as each:
        async for _ in each:
            break


async def drops_a_generator() -> None:
    async for _ in rows():
        break


async def reads_the_error() -> None:
    with pytest.raises(ValueError, match="card declined"):
        await asyncio.create_task(failing())


async def runs_a_child() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await process.wait()


INNOCENT = (
    ends_in_the_grace,
    joins_what_it_cancels,
    uses_a_group,
    uses_a_scope,
    uses_the_default_executor,
    breaks_out_of_a_generator,
    drops_a_generator,
    reads_the_error,
    runs_a_child,
)


@pytest.mark.parametrize("block", INNOCENT, ids=lambda block: block.__name__)
def test_a_block_that_ends_what_it_begins_is_clean(block: Block) -> None:
    assert left_by(block, grace=10) == ()


def test_leaks_of_others_are_not_reported_for_the_block() -> None:
    async def main() -> None:
        before = asyncio.create_task(for_ever())
        begun = asyncio.Event()

        async def other() -> None:
            begun.set()
            await asyncio.sleep(0)
            others.append(asyncio.create_task(for_ever()))

        others = [asyncio.create_task(other())]
        async with no_leaks(grace=0):
            await begun.wait()
            await asyncio.wait(others[:1])
        for task in (before, *others):
            task.cancel()

    asyncio.run(main())


def test_a_task_that_a_task_of_a_scope_starts_is_the_blocks() -> None:
    async def start() -> None:
        asyncio.create_task(for_ever(), name="started")

    async def block() -> None:
        async with no_leaks(grace=0), handfast.Scope("within") as scope:
            scope.spawn(start())

    with pytest.raises(LeakError) as caught:
        asyncio.run(block())
    assert ["task 'started'" in str(each) for each in caught.value.leaks] == [True]


def test_a_task_of_a_scope_that_was_there_before_is_not_the_blocks() -> None:
    earlier = asyncio.new_event_loop()
    scope = handfast.Scope("earlier", on_failure="report")

    async def begin() -> None:
        scope.spawn(for_ever())

    async def block() -> None:
        async with no_leaks(grace=0):
            pass

    earlier.run_until_complete(begin())
    asyncio.run(block())
    earlier.run_until_complete(scope.close(grace=0))
    earlier.close()


def test_two_blocks_at_once_each_report_their_own_leaks() -> None:
    async def one(name: str) -> list[str]:
        with pytest.raises(LeakError) as caught:
            async with no_leaks(grace=0):
                asyncio.create_task(for_ever(), name=name)
                await asyncio.sleep(0)
        return [leak.what for leak in caught.value.leaks]

    async def main() -> list[list[str]]:
        return list(await asyncio.gather(one("a"), one("b")))

    assert asyncio.run(main()) == [["task 'a' running for_ever"], ["task 'b' running for_ever"]]


# --- errors --------------------------------------------------------------------------------------


def test_the_error_of_the_block_stays_the_headline_and_gets_the_leaks_as_notes() -> None:
    async def main() -> None:
        async with no_leaks(grace=0):
            asyncio.create_task(for_ever(), name="poll")
            raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        asyncio.run(main())
    assert ["task 'poll'" in note for note in caught.value.__notes__] == [True]


def test_an_unknown_check_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="no check is called 'task'; there are tasks, errors"):
        no_leaks(check=["task"])


def test_a_negative_grace_is_refused() -> None:
    with pytest.raises(ValueError, match="grace"):
        no_leaks(grace=-1)


def test_one_check_may_be_named_by_itself() -> None:
    async def block() -> None:
        asyncio.create_task(for_ever())

    assert left_by(block, check="timers") == ()


def test_inside_a_loop_the_plain_block_is_refused() -> None:
    async def main() -> None:
        with no_leaks():
            raise AssertionError

    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(main())


def test_a_leak_error_can_be_split_by_code() -> None:
    group = LeakError([Leak(code, "x", check="tasks") for code in ("HF102", "HF601")])
    match, rest = group.split(lambda each: isinstance(each, Leak) and each.code == "HF601")
    assert isinstance(match, LeakError)
    assert isinstance(rest, LeakError)
    assert [leak.code for leak in match.leaks] == ["HF601"]


PROGRAM = """
import asyncio
from handfast.leaks import no_leaks
async def main():
    async with no_leaks() as watched:
        pass
    return watched
print(asyncio.run(main()).not_checked)
"""


def test_nothing_is_unchecked_in_a_block_on_a_stock_loop() -> None:
    # In a Python of its own: here another test may have left a loop of another kind.
    command = [sys.executable, "-c", PROGRAM]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert finished.stdout == "()\n"
