"""Report 2: the child that talks. Its sections come out as promised, and S1.1 to S1.8 hold."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import os
import re
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import handfast
from examples import show
from examples.child import as_proposed, as_reported, explored, process_alive
from examples.child import fixed as fixed_version
from examples.child.messages import ChildExit, ChildGone, Message
from examples.child.process_alive import is_running
from examples.child.real import COMMAND
from examples.example import Example
from handfast import explore, leaks, scripted

EXAMPLE: Example = importlib.import_module("examples.child").EXAMPLE
MEGABYTE = 1 << 20
LONG = 3600
# A child that answers each line, and one that ends after the first.
ANSWERS = scripted.Hears(lambda _: b'{"session": "one"}\n', lines=None)
LEAVES = scripted.Hears(), scripted.Errs(b"I cannot go on\n"), scripted.Exits(3)

Program = Callable[[], Coroutine[Any, Any, object]]


def holds(program: Program, schedules: int = 40, **options: Any) -> None:
    """No schedule breaks it, and none leaves a child or a task behind."""
    result = explore.explore(program, schedules=schedules, **options)
    assert result.counterexample is None, result.counterexample.report()


def really(main: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """With real children, and nothing is left of them."""

    async def watched() -> None:
        async with leaks.no_leaks(), asyncio.timeout(20):
            await main()

    asyncio.run(watched())


async def outcome(awaitable: Awaitable[object]) -> object:
    """What it gives, or the error that it is expected to raise."""
    try:
        return await awaitable
    except ChildGone as gone:
        return gone


async def reaped(pid: int) -> None:
    """Until the loop has seen its end, and has let go of it."""
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        await asyncio.sleep(0.001)
    for _ in range(20):
        await asyncio.sleep(0)


# --- the sections --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "codes"), [("as_reported", {"HF303"}), ("as_proposed", {"HF303", "HF321"})]
)
def test_check_finds_the_bug_of_the_report_and_of_its_fix(version: str, codes: set[str]) -> None:
    section = show.what_check_says(EXAMPLE, version)
    assert not section.ok
    assert {word for word in section.text.split() if word.startswith("HF")} == codes


def test_check_finds_nothing_in_the_fixed_program() -> None:
    assert show.what_check_says(EXAMPLE, "fixed").ok


def test_a_restart_during_a_request_leaks_a_child() -> None:
    section = show.what_explore_finds(EXAMPLE, "as_reported")
    assert not section.ok
    assert section.text.startswith("HF441 ")
    assert "3 children were started, and one is tracked" in section.text
    assert "1 change to the normal order" in section.text


def test_cancelling_the_drain_first_kills_the_child_while_it_saves() -> None:
    """HF443 where `wait()` returns nonetheless (#119710): the end of its words is lost."""
    section = show.what_explore_finds(EXAMPLE, "as_proposed")
    assert not section.ok
    assert section.text.startswith(("HF431 ", "HF443 "))


@pytest.mark.parametrize("kind", [as_reported.Companion, as_proposed.Companion])
def test_the_reported_drain_ends_at_an_invalid_byte(
    kind: type[explored.AnyCompanion],
) -> None:
    found = explore.explore(lambda: explored.noisy(kind), schedules=1).counterexample
    assert found is not None
    assert found.code == "HF431"
    assert explore.explore(explored.noisy_as_reported, schedules=1).counterexample is not None


def test_the_explorer_finds_nothing_in_the_fixed_program() -> None:
    fewer = dataclasses.replace(EXAMPLE, options={**EXAMPLE.options, "schedules": 80})
    section = show.what_explore_finds(fewer, "fixed")
    assert section.ok, section.text
    assert section.text.startswith("nothing found\n")


def test_with_real_parts_as_reported_a_child_is_leaked() -> None:
    """In a Python of its own: the loop that is closed over it says so, later, on stderr."""
    script = "from examples import child, show\n"
    script += "print(show.what_leaks(child.EXAMPLE, 'as_reported'))"
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "ok=False" in output
    assert "3 children for one start and one restart; 1 still running after close" in output
    assert "HF701 process-left-running" in output


def test_the_leaked_child_was_started_by_the_restart_or_the_request() -> None:
    async def main() -> None:
        with pytest.raises(leaks.LeakError) as caught:
            async with leaks.no_leaks():
                await EXAMPLE.real("as_reported")()
        output = "\n".join(map(str, caught.value.leaks))
        # The drain of the lost one is left too, if it had begun before the other was stored.
        assert {leak.code for leak in caught.value.leaks} - {"HF102"} == {"HF701"}
        [pid] = re.findall(r"child process (\d+)", output)
        os.killpg(int(pid), signal.SIGKILL)
        await reaped(int(pid))

    asyncio.run(main())


def test_with_real_parts_as_proposed_the_last_output_is_lost() -> None:
    said = asyncio.run(EXAMPLE.real("as_proposed")())
    assert said.startswith("of 4096 lines written at the end 0 were read; ")
    assert said.endswith("close has not returned") or "killed by SIGKILL" in said


def test_with_real_parts_fixed_nothing_is_leaked() -> None:
    section = show.what_leaks(EXAMPLE, "fixed")
    assert section.ok, section.text
    assert "a request cut short (ChildGone), and of 3 processes 0 still running" in section.text
    assert "exit code 0, its last line 'saved 4096 of 4096'" in section.text


# --- the guarantees ------------------------------------------------------------------------------


def test_s1_1_the_drain_survives_any_bytes_in_bounded_memory() -> None:
    """S1.1: "The drain survives any bytes (not UTF-8, NULs) and lines of any length, in bounded
    memory. A drain that dies leaves the child blocked on stderr for ever."
    """

    async def main() -> None:
        companion = fixed_version.Companion(*COMMAND)
        await companion.send({"do": "echo"})
        tracemalloc.start()
        try:
            for _ in range(2):
                await companion.send({"do": "noise", "number": 16 * MEGABYTE})
            assert tracemalloc.get_traced_memory()[1] < 8 * MEGABYTE
        finally:
            tracemalloc.stop()
            await companion.close()

    really(main)
    holds(lambda: explored.noisy(fixed_version.Companion), 20)


def test_s1_2_terminate_then_drain_then_reap_then_drop() -> None:
    """S1.2: "Order of teardown: signal, drain to EOF (bounded in time), cancel and await the drain,
    reap, drop the handle."
    """

    async def main() -> None:
        companion = fixed_version.Companion(*COMMAND, grace=15)
        await companion.send({"do": "flood", "number": 4096})
        child_exit = await companion.close()
        assert child_exit is not None
        assert child_exit.status == handfast.types.ExitStatus(0, None)
        assert child_exit.last_line == "saved 4096 of 4096"
        assert companion._proc is None

    really(main)
    holds(lambda: explored.much_output_at_the_end(fixed_version.Companion), 20)


def test_s1_3_a_waiter_for_the_old_child_does_not_touch_the_new_one() -> None:
    """S1.3: "Teardown touches only its own process: one object per child, never a shared attribute
    that a restart can refill meanwhile."
    """

    async def program() -> None:
        ends = scripted.On(15, scripted.Waits(0.05), scripted.Exits(0))
        scripted.child("companion", ends, scripted.Hears(), scripted.Waits())
        companion = fixed_version.Companion("companion")
        request = asyncio.create_task(outcome(companion.send({"do": "think"})))
        first = await companion.start()
        scripted.child("companion", ends, ANSWERS)
        await asyncio.gather(request, companion.restart())
        assert isinstance(request.result(), ChildGone)
        second = await companion.start()
        assert second is not first
        await companion._kill(first)  # a late caller with the old child
        assert await companion.send({"do": "echo"}) == {"session": "one"}
        assert companion._proc is second, "the one that the restart had started was ended"
        await companion.close()

    holds(program)


def test_s1_4_close_is_bounded_though_a_grandchild_holds_the_pipe() -> None:
    """S1.4: "Close is bounded even when a grandchild holds the pipe open (exit and EOF are two
    events), and the whole process group is gone."
    """

    async def main() -> None:
        companion = fixed_version.Companion(*COMMAND, grace=0.1)
        family = await companion.send({"do": "fork", "number": LONG})
        assert is_running(family["result"])
        await companion.close()
        assert not is_running(family["pid"])
        assert not is_running(family["result"])

    really(main)


def test_s1_5_no_drain_is_pending_after_close() -> None:
    """S1.5: "No drain task is pending after close returns." """

    async def program() -> None:
        scripted.child("companion", scripted.Errs(b"noise\n"), ANSWERS)
        companion = fixed_version.Companion("companion")
        request = asyncio.create_task(outcome(companion.send({"do": "echo"})))
        await companion.start()
        await companion.close()
        await request
        await companion.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    holds(program)


class Watched(fixed_version.Companion):
    """Looks at each start whether one before it is still there."""

    def __init__(self, *argv: str, grace: float) -> None:
        super().__init__(*argv, grace=grace)
        self.pids: list[int] = []

    async def start(self) -> handfast.Process:
        proc = await super().start()
        if proc.pid not in self.pids:
            assert not any(map(is_running, self.pids)), "two of them at once"
            self.pids.append(proc.pid)
        return proc


def test_s1_6_there_is_one_live_child_and_it_is_tracked() -> None:
    """S1.6: "close/close, close/send and restart/send at the same time: exactly one live child, and
    it is tracked."
    """

    async def main() -> None:
        companion = Watched(*COMMAND, grace=5)
        for _ in range(3):
            await companion.send({"do": "echo"})
            await asyncio.gather(companion.close(), companion.close())
            assert not any(map(is_running, companion.pids))
            await asyncio.gather(outcome(companion.send({"do": "echo"})), companion.close())
            await asyncio.gather(companion.restart(), outcome(companion.send({"do": "echo"})))
            alive = [pid for pid in companion.pids if is_running(pid)]
            assert companion._proc is not None
            assert alive == [companion._proc.pid]
        await companion.close()

    really(main)


@pytest.mark.parametrize("pair", ["close close", "close send", "restart send", "restart restart"])
def test_s1_6_under_every_order_of_two_at_once(pair: str) -> None:
    """S1.6: a child that is not tracked would be leaked."""

    async def program() -> None:
        scripted.child(
            "companion", scripted.On(15, scripted.Waits(0.01), scripted.Exits(0)), ANSWERS
        )
        companion = fixed_version.Companion("companion")
        actions: dict[str, Callable[[], Awaitable[object]]] = {
            "close": companion.close,
            "restart": companion.restart,
            "send": lambda: outcome(companion.send({"do": "echo"})),
        }
        await companion.send({"do": "begin"})
        await asyncio.gather(*(actions[each]() for each in pair.split()))
        assert (companion._proc is not None) or "close" in pair
        await companion.close()

    holds(program)


def test_s1_7_the_last_output_and_the_exit_of_a_child_that_ends_by_itself() -> None:
    """S1.7: "The last stderr of a child that exits by itself is captured, and its exit code is
    right." Also where a grandchild holds the pipes, so that no EOF follows the exit.
    """
    expected = ChildExit.of(3, "I cannot go on\n")

    async def main() -> None:
        companion = fixed_version.Companion(*COMMAND, grace=0.1)
        for before in ({"do": "echo"}, {"do": "fork", "number": LONG}):
            await companion.send(before)
            gone = await outcome(companion.send({"do": "leave", "number": 3}))
            assert isinstance(gone, ChildGone)
            assert gone.child_exit == expected
            assert companion._proc is None

    async def program() -> None:
        scripted.child("companion", *LEAVES)
        gone = await outcome(fixed_version.Companion("companion").send({"do": "leave"}))
        assert isinstance(gone, ChildGone)
        assert gone.child_exit == expected, str(gone)

    really(main)
    holds(program)


def test_s1_8_a_start_that_is_cancelled_leaves_no_orphan() -> None:
    """S1.8: "Cancellation while the child is being started leaves no orphan." """

    async def main() -> None:
        for turns in range(10):
            companion = fixed_version.Companion(*COMMAND)
            starting = asyncio.create_task(companion.start())
            for _ in range(turns):
                await asyncio.sleep(0)
            starting.cancel()
            await asyncio.wait({starting})
            assert starting.cancelled() == (companion._proc is None)
            await companion.close()

    async def program() -> None:
        scripted.child("companion", ANSWERS)
        companion = fixed_version.Companion("companion")
        await explore.victim(companion.start())
        await explore.victim(companion.restart())
        assert await companion.send({"do": "echo"}) == {"session": "one"}
        await companion.close()

    really(main)
    holds(program, 80, cancel=True)


# --- what the three have in common ---------------------------------------------------------------

VERSIONS: list[type[explored.AnyCompanion]] = [
    as_reported.Companion,
    as_proposed.Companion,
    fixed_version.Companion,
]


@pytest.mark.parametrize("kind", VERSIONS)
def test_without_races_all_versions_do_the_same(kind: type[explored.AnyCompanion]) -> None:
    async def program() -> None:
        scripted.child("companion", scripted.Errs(b"hello\n"), ANSWERS)
        companion = kind("companion", grace=1)
        assert await companion.close() is None
        assert await companion.send({"do": "echo"}) == {"session": "one"}
        await companion.restart()
        scripted.child("companion", *LEAVES)
        assert await companion.send({"do": "echo"}) == {"session": "one"}
        await companion.restart()
        gone = await outcome(companion.send({"do": "leave"}))
        assert isinstance(gone, ChildGone)
        assert gone.child_exit is not None
        assert gone.child_exit.status.code == 3

    holds(program, 1)


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_child_that_ignores_sigterm_is_killed_by_all_versions(
    kind: type[explored.AnyCompanion],
) -> None:
    async def program() -> None:
        scripted.child("companion", scripted.Ignores(15), ANSWERS, scripted.Waits())
        companion = kind("companion", grace=1)
        await companion.send({"do": "echo"})
        assert await companion.close() == ChildExit.of(-9, "")

    holds(program, 1)


# --- what else a reader of the program may rely on -----------------------------------------------


def test_each_request_gets_its_own_answer() -> None:
    """A question that is given up takes its child along: the next answer would be its answer."""

    def answer(line: bytes) -> bytes:
        return b'{"session": "one", "query": %s}\n' % line.strip()

    async def program() -> None:
        scripted.child("companion", scripted.Hears(answer, lines=None))
        companion = fixed_version.Companion("companion")
        await explore.victim(companion.send({"number": 1}))
        message: Message = {"number": 2}
        assert (await companion.send(message))["query"] == message
        await companion.close()

    holds(program, 100, cancel=True)


def test_half_an_answer_is_no_answer() -> None:
    async def program() -> None:
        scripted.child("companion", scripted.Hears(lambda _: b'{"session": '), scripted.Exits(1))
        gone = await outcome(fixed_version.Companion("companion").send({"do": "echo"}))
        assert isinstance(gone, ChildGone)
        assert "exit code 1" in str(gone)

    holds(program)


def test_without_a_process_table_a_signal_shows_whether_a_process_lives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_alive, "_PROC", tmp_path)
    assert is_running(os.getpid())
    with subprocess.Popen(["true"]) as ended:
        pass
    assert not is_running(ended.pid)
