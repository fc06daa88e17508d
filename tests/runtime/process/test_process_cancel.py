"""Cancellation at every turn of the loop: while a child starts, and while it is closed.

S1.8 for the start. For the close: it survives any number of cancels, and only then passes them on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

import pytest

from handfast._runtime.process import process as process_module
from handfast._runtime.process.child import Child
from handfast._runtime.process.command import Command
from handfast._runtime.process.exit_status import ExitStatus
from handfast._runtime.process.launch import launch
from handfast._runtime.process.process import Process
from tests.runtime.process.processes import (
    FAMILY,
    LOOPS,
    cancel_at,
    descriptors,
    drive,
    line_of,
    new_loop,
    on_each_loop,
    outcome,
    running,
    turns,
    until,
    zombies,
)

pytestmark = pytest.mark.usefixtures("small_heap")

# A start takes fewer turns than this on every loop; the first test below holds it to that.
START_TURNS = 20


@on_each_loop
def test_a_start_takes_fewer_turns_than_are_tried(kind: str) -> None:
    async def main() -> None:
        starter = asyncio.create_task(Process("cat").start())
        await turns(START_TURNS)
        assert starter.done()
        await starter.result().close()

    drive(kind, main)


@on_each_loop
@pytest.mark.parametrize("program", ["family", "exits at once", "missing"])
def test_a_cancel_at_any_turn_of_the_start_leaves_no_orphan(kind: str, program: str) -> None:
    """S1.8."""
    argv = {"family": FAMILY, "exits at once": ("true",), "missing": ("/no/such/program",)}[program]

    async def main() -> None:
        seen = set()
        for when in range(START_TURNS):
            process = Process(*argv)
            starter = asyncio.create_task(process.start())
            cancel_at(starter, when)
            seen.add(result := await outcome(starter))
            if result == "cancelled":
                assert running() == []
                assert asyncio.all_tasks() == {asyncio.current_task()}
            await process.close()
        # A start that fails in the first step of an eager task is over before anybody can cancel it.
        if not (kind == "eager" and program == "missing"):
            assert "cancelled" in seen
        assert seen - {"cancelled"} == {"ProcessStartError" if program == "missing" else "finished"}

    drive(kind, main)


@on_each_loop
def test_cancels_that_follow_each_other_during_the_start_leave_no_orphan(kind: str) -> None:
    """S1.8: the second cancel arrives while the first is being honoured."""

    async def main() -> None:
        for when in range(0, START_TURNS, 2):
            for later in (0, 1, 3, 8):
                process = Process(*FAMILY)
                starter = asyncio.create_task(process.start())
                cancel_at(starter, when, later, 0, 0, 1)
                if await outcome(starter) == "cancelled":
                    assert running() == []
                else:
                    await process.close()

    drive(kind, main)


@on_each_loop
def test_async_with_that_is_cancelled_leaves_nothing(kind: str) -> None:
    async def main() -> None:
        async def use() -> None:
            async with Process(*FAMILY) as process:
                await line_of(process)
                await process.wait()

        for when in [*range(0, 40, 3), 100, 400, 1600]:
            user = asyncio.create_task(use())
            cancel_at(user, when)
            assert await outcome(user) == "cancelled"
            assert running() == []

    drive(kind, main)


@on_each_loop
def test_a_cancel_at_any_turn_of_the_close_is_raised_after_it(kind: str) -> None:
    async def main() -> None:
        results = set()
        for when in [*range(1, 16), 30, 60, 120, 240, 480]:  # before 1 it has not begun
            process = await Process(*FAMILY).start()
            closer = asyncio.create_task(process.close())
            cancel_at(closer, when)
            results.add(await outcome(closer))
            assert running() == []
            assert process.stdout.eof
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert await process.close() == ExitStatus(None, signal.SIGTERM)
        assert "cancelled" in results

    drive(kind, main)


@on_each_loop
def test_cancels_that_follow_each_other_do_not_cut_the_close(kind: str) -> None:
    async def main() -> None:
        results = set()
        for when in [1, 2, 3, 5, 8, 20]:
            for later in (0, 1, 2, 5, 20):
                process = await Process(*FAMILY).start()
                closer = asyncio.create_task(process.close())
                other = asyncio.create_task(process.close())
                cancel_at(closer, when, later, 0, later)
                results.add(await outcome(closer))  # it may have finished before
                assert running() == []
                assert await other == ExitStatus(None, signal.SIGTERM)
        assert "cancelled" in results

    drive(kind, main)


@on_each_loop
def test_a_time_out_around_the_close_waits_for_it(kind: str) -> None:
    async def main() -> None:
        process = await Process(*FAMILY).start()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await process.close()
        assert running() == []

    drive(kind, main)


@on_each_loop
def test_a_close_that_is_cancelled_while_it_waits_for_the_start(kind: str) -> None:
    async def main() -> None:
        for when in range(12):
            process = Process(*FAMILY)
            starter = asyncio.create_task(process.start())
            await turns(1)
            closer = asyncio.create_task(process.close())
            cancel_at(closer, when)
            cancel_at(starter, when // 2)
            assert await outcome(closer) in ("cancelled", "finished")
            await outcome(starter)
            assert running() == []

    drive(kind, main)


@on_each_loop
def test_a_teardown_whose_task_is_cancelled_goes_on(kind: str) -> None:
    """The shutdown of a loop cancels every task it finds, those of the runtime too."""

    async def main() -> None:
        def cancel_teardown() -> None:
            if process._teardown is not None:
                process._teardown.cancel()
                process._teardown.cancel()

        loop = asyncio.get_running_loop()
        for when in [0, *range(12), 40, 160]:
            process = await Process(*FAMILY).start()
            closer = asyncio.create_task(process.close())
            # In the turn in which the teardown was made: before its first step.
            loop.call_soon(cancel_teardown)
            await turns(when)
            cancel_teardown()
            assert await closer == ExitStatus(None, signal.SIGTERM)
            assert running() == []

    drive(kind, main)


@on_each_loop
@pytest.mark.parametrize("stage", ["start", "close"])
def test_a_loop_that_shuts_down_at_any_turn_leaves_no_process(kind: str, stage: str) -> None:
    """KeyboardInterrupt in asyncio.run: all tasks are cancelled at once, ours too (#125502)."""

    async def use(begun: asyncio.Event) -> None:
        async with Process(*FAMILY) as process:
            await line_of(process)
            begun.set()
        await asyncio.sleep(1000)

    async def begin(when: int) -> None:
        begun = asyncio.Event()
        asyncio.get_running_loop().call_soon(held.append, asyncio.create_task(use(begun)))
        if stage == "close":
            await begun.wait()
        await turns(when)

    def shut_down(when: int) -> None:
        loop = new_loop(kind)
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(begin(when))

    async def main() -> None:
        for when in range(START_TURNS):
            # In a thread, since this one has a loop already.
            thread = threading.Thread(target=shut_down, args=(when,))
            thread.start()
            thread.join()
            assert [task.cancelled() for task in held] == [True]
            held.clear()
            assert running() == []
            assert zombies() == []

    held: list[asyncio.Task[None]] = []
    drive(kind, main)


INTERRUPTED = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from handfast._runtime.process.process import Process
from tests.runtime.process.processes import FAMILY, line_of, new_loop
async def main():
    async with Process(*FAMILY) as process:
        await line_of(process)
        print("up", flush=True)
        await process.wait()
with asyncio.Runner(loop_factory=lambda: new_loop(sys.argv[1])) as runner:
    runner.run(main())
"""


@on_each_loop
def test_an_interrupt_of_the_whole_program_leaves_nothing(kind: str) -> None:
    """KeyboardInterrupt, with a real signal; the program ends as the shell expects."""

    async def main() -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        async with Process(sys.executable, "-c", INTERRUPTED, kind, env=environment) as program:
            assert await line_of(program) == b"up\n", str(program.stderr)
            await until(lambda: len(running()) == 3)
            os.kill(program.pid, signal.SIGINT)
            assert await program.wait() == ExitStatus(None, signal.SIGINT)
            assert running() == []

    drive(kind, main)


@on_each_loop
def test_a_start_that_hangs_is_given_up_and_killed_when_it_shows_up(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1.8: whatever holds the loop's start up, its caller gets away, and no orphan is left."""
    monkeypatch.setattr(process_module, "START_TIMEOUT", 0.02)
    late: list[tuple[asyncio.AbstractEventLoop, Command, Child]] = []

    def hangs(
        loop: asyncio.AbstractEventLoop, command: Command, child: Child
    ) -> asyncio.Task[Child]:
        late.append((loop, command, child))
        return loop.create_task(asyncio.Event().wait())  # type: ignore[arg-type]

    async def main() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(process_module, "launch", hangs)
            process = Process(*FAMILY)
            starter = asyncio.create_task(process.start())
            await turns(3)
            starter.cancel()
            assert await outcome(starter) == "cancelled"
        # Now it comes after all.
        child = await launch(*late.pop())
        await child.exited.wait()
        assert child.returncode == -signal.SIGKILL
        await until(lambda: child.transport is None and running() == [])
        assert await process.close() == ExitStatus(None, None)

    drive(kind, main)


@pytest.mark.parametrize("kind", [kind for kind in LOOPS if kind != "uvloop"])
@pytest.mark.parametrize("closed", [True, False])
def test_a_start_that_hangs_is_cancelled_in_the_end(
    kind: str, closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1.8: the loop gets its chance to clean up. Not on uvloop, whose methods cannot be replaced."""
    monkeypatch.setattr(process_module, "START_TIMEOUT", 0.02)

    async def main() -> None:
        seen: list[str] = []

        async def hangs(*_: object, **__: object) -> None:
            seen.append("begun")
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("left")

        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "subprocess_exec", hangs)
            process = Process(*FAMILY)
            starter = asyncio.create_task(process.start())
            await turns(3)
            if closed:
                assert await process.close() == ExitStatus(None, None)
            else:
                starter.cancel()
            assert await outcome(starter) == "cancelled"
        assert seen == ["begun", "left"]
        assert [line async for line in process.stdout.lines()] == []

    drive(kind, main)


@on_each_loop
def test_a_hundred_starts_that_are_cancelled_grow_nothing(kind: str) -> None:
    async def main() -> None:
        before = descriptors()
        for number in range(100):
            starter = asyncio.create_task(Process("cat").start())
            cancel_at(starter, number % 7)
            if await outcome(starter) == "finished":
                await starter.result().close()
        await until(lambda: zombies() == [])
        assert descriptors() == before
        assert running() == []

    drive(kind, main)
