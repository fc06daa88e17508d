"""Seed 001: the child that talks. Its chapters come out as promised, and S1.1 to S1.8 hold."""

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

import holdfast
from holdfast import explore, leaks
from holdfast.casebook import telling
from holdfast.casebook.case import Case
from holdfast.casebook.child import alive, as_proposed, as_reported, schedules
from holdfast.casebook.child import as_it_should_be as should_be
from holdfast.casebook.child.alive import runs
from holdfast.casebook.child.farewell import ChildGone, Farewell, Message
from holdfast.casebook.child.real import COMMAND

CASE: Case = importlib.import_module("holdfast.casebook.child").CASE
MEGABYTE = 1 << 20
LONG = 3600
# A child that answers each line, and one that ends after the first.
ANSWERS = explore.Hears(lambda _: b'{"session": "one"}\n', lines=None)
LEAVES = explore.Hears(), explore.Errs(b"I cannot go on\n"), explore.Exits(3)

Program = Callable[[], Coroutine[Any, Any, object]]


def holds(program: Program, schedules: int = 40, **options: Any) -> None:
    """No schedule breaks it, and none leaves a child or a task behind."""
    result = explore.explore(program, schedules=schedules, **options)
    assert result.counterexample is None, result.counterexample.report()


def really(main: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """With real children, and nothing is left of them."""

    async def watched() -> None:
        async with leaks.watch(), asyncio.timeout(20):
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


# --- the chapters --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "codes"), [("as_reported", {"HF303"}), ("as_proposed", {"HF303", "HF321"})]
)
def test_check_finds_the_bug_of_the_report_and_of_its_remedy(version: str, codes: set[str]) -> None:
    chapter = telling.what_check_says(CASE, version)
    assert not chapter.went_well
    assert {word for word in chapter.text.split() if word.startswith("HF")} == codes


def test_check_is_silent_on_the_program_as_it_should_be() -> None:
    assert telling.what_check_says(CASE, "as_it_should_be").went_well


def test_a_restart_while_it_is_asked_leaves_a_child_that_nobody_tracks() -> None:
    chapter = telling.what_explore_finds(CASE, "as_reported")
    assert not chapter.went_well
    assert chapter.text.startswith("HF441 ")
    assert "3 were started, and one is tracked" in chapter.text
    assert "1 departure from the plain order" in chapter.text


def test_cancelling_the_drain_first_cuts_the_child_in_the_middle_of_saving() -> None:
    """HF441 where `wait()` returns nonetheless (#119710): the end of its words is lost."""
    chapter = telling.what_explore_finds(CASE, "as_proposed")
    assert not chapter.went_well
    assert chapter.text.startswith(("HF431 ", "HF441 "))


@pytest.mark.parametrize("kind", [as_reported.Companion, as_proposed.Companion])
def test_their_drain_dies_of_a_byte_and_the_child_blocks(kind: type[schedules.Talks]) -> None:
    found = explore.explore(lambda: schedules.noisy(kind), schedules=1).counterexample
    assert found is not None
    assert found.code == "HF431"
    assert explore.explore(schedules.noisy_as_reported, schedules=1).counterexample is not None


def test_nothing_is_found_in_the_program_as_it_should_be() -> None:
    fewer = dataclasses.replace(CASE, options={**CASE.options, "schedules": 80})
    chapter = telling.what_explore_finds(fewer, "as_it_should_be")
    assert chapter.went_well, chapter.text
    assert chapter.text.startswith("nothing found\n")


def test_with_real_parts_as_reported_a_child_is_left() -> None:
    """In a Python of its own: the loop that is closed over it says so, later, on stderr."""
    script = "from holdfast.casebook import child, telling\n"
    script += "print(telling.what_is_left(child.CASE, 'as_reported'))"
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "went_well=False" in told
    assert "3 children for one start and one restart; 1 runs on after close" in told
    assert "HF701 process-left-running" in told


def test_what_is_left_as_reported_is_the_child_that_the_restart_or_the_question_lost() -> None:
    async def main() -> None:
        with pytest.raises(leaks.LeakError) as caught:
            async with leaks.watch():
                await CASE.real("as_reported")()
        told = "\n".join(map(str, caught.value.leaks))
        # The drain of the lost one is left too, if it had begun before the other was stored.
        assert {leak.code for leak in caught.value.leaks} - {"HF102"} == {"HF701"}
        [pid] = re.findall(r"child process (\d+)", told)
        os.killpg(int(pid), signal.SIGKILL)
        await reaped(int(pid))

    asyncio.run(main())


def test_with_real_parts_as_proposed_what_was_to_be_saved_is_lost() -> None:
    said = asyncio.run(CASE.real("as_proposed")())
    assert said.startswith("of 4096 lines to save at the end 0 came; ")
    assert said.endswith("close has not returned") or "killed by SIGKILL" in said


def test_with_real_parts_as_it_should_be_nothing_is_left() -> None:
    chapter = telling.what_is_left(CASE, "as_it_should_be")
    assert chapter.went_well, chapter.text
    assert "a question cut short (ChildGone), and of 3 processes 0 run on" in chapter.text
    assert "exit code 0, its last line 'saved 4096 of 4096'" in chapter.text


# --- the guarantees ------------------------------------------------------------------------------


def test_s1_1_the_drain_survives_any_bytes_in_bounded_memory() -> None:
    """S1.1: "The drain survives any bytes (not UTF-8, NULs) and lines of any length, in bounded
    memory. A drain that dies leaves the child blocked on stderr for ever."
    """

    async def main() -> None:
        companion = should_be.Companion(*COMMAND)
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
    holds(lambda: schedules.noisy(should_be.Companion), 20)


def test_s1_2_it_is_told_to_end_then_drained_then_reaped_then_dropped() -> None:
    """S1.2: "Order of teardown: signal, drain to EOF (bounded in time), cancel and await the drain,
    reap, drop the handle."
    """

    async def main() -> None:
        companion = should_be.Companion(*COMMAND, grace=15)
        await companion.send({"do": "flood", "number": 4096})
        farewell = await companion.close()
        assert farewell is not None
        assert farewell.status == holdfast.ExitStatus(0, None)
        assert farewell.last_line == "saved 4096 of 4096"
        assert companion._proc is None

    really(main)
    holds(lambda: schedules.full_of_last_words(should_be.Companion), 20)


def test_s1_3_who_waited_for_the_old_child_does_not_touch_the_new_one() -> None:
    """S1.3: "Teardown touches only its own process: one object per child, never a shared attribute
    that a restart can refill meanwhile."
    """

    async def program() -> None:
        ends = explore.On(15, explore.Waits(0.05), explore.Exits(0))
        explore.child("companion", ends, explore.Hears(), explore.Waits())
        companion = should_be.Companion("companion")
        asked = asyncio.create_task(outcome(companion.send({"do": "think"})))
        first = await companion.start()
        explore.child("companion", ends, ANSWERS)
        await asyncio.gather(asked, companion.restart())
        assert isinstance(asked.result(), ChildGone)
        second = await companion.start()
        assert second is not first
        await companion._kill(first)  # somebody who had it, and comes late
        assert await companion.send({"do": "echo"}) == {"session": "one"}
        assert companion._proc is second, "the one that the restart had started was ended"
        await companion.close()

    holds(program)


def test_s1_4_close_is_bounded_though_a_grandchild_holds_the_pipe() -> None:
    """S1.4: "Close is bounded even when a grandchild holds the pipe open (exit and EOF are two
    events), and the whole process group is gone."
    """

    async def main() -> None:
        companion = should_be.Companion(*COMMAND, grace=0.1)
        family = await companion.send({"do": "fork", "number": LONG})
        assert runs(family["result"])
        await companion.close()
        assert not runs(family["pid"])
        assert not runs(family["result"])

    really(main)


def test_s1_5_no_drain_is_pending_after_close() -> None:
    """S1.5: "No drain task is pending after close returns." """

    async def program() -> None:
        explore.child("companion", explore.Errs(b"noise\n"), ANSWERS)
        companion = should_be.Companion("companion")
        asked = asyncio.create_task(outcome(companion.send({"do": "echo"})))
        await companion.start()
        await companion.close()
        await asked
        await companion.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    holds(program)


class Watched(should_be.Companion):
    """Looks at each start whether one before it is still there."""

    def __init__(self, *argv: str, grace: float) -> None:
        super().__init__(*argv, grace=grace)
        self.pids: list[int] = []

    async def start(self) -> holdfast.Process:
        proc = await super().start()
        if proc.pid not in self.pids:
            assert not any(map(runs, self.pids)), "two of them at once"
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
            assert not any(map(runs, companion.pids))
            await asyncio.gather(outcome(companion.send({"do": "echo"})), companion.close())
            await asyncio.gather(companion.restart(), outcome(companion.send({"do": "echo"})))
            alive = [pid for pid in companion.pids if runs(pid)]
            assert companion._proc is not None
            assert alive == [companion._proc.pid]
        await companion.close()

    really(main)


@pytest.mark.parametrize("pair", ["close close", "close send", "restart send", "restart restart"])
def test_s1_6_under_every_order_of_two_at_once(pair: str) -> None:
    """S1.6, and whoever is not tracked would be left over."""

    async def program() -> None:
        explore.child("companion", explore.On(15, explore.Waits(0.01), explore.Exits(0)), ANSWERS)
        companion = should_be.Companion("companion")
        deeds: dict[str, Callable[[], Awaitable[object]]] = {
            "close": companion.close,
            "restart": companion.restart,
            "send": lambda: outcome(companion.send({"do": "echo"})),
        }
        await companion.send({"do": "begin"})
        await asyncio.gather(*(deeds[each]() for each in pair.split()))
        assert (companion._proc is not None) or "close" in pair
        await companion.close()

    holds(program)


def test_s1_7_the_last_words_and_the_exit_of_a_child_that_ends_by_itself() -> None:
    """S1.7: "The last stderr of a child that exits by itself is captured, and its exit code is
    right." Also where a grandchild holds the pipes, so that no EOF follows the exit.
    """
    expected = Farewell.of(3, "I cannot go on\n")

    async def main() -> None:
        companion = should_be.Companion(*COMMAND, grace=0.1)
        for before in ({"do": "echo"}, {"do": "fork", "number": LONG}):
            await companion.send(before)
            gone = await outcome(companion.send({"do": "leave", "number": 3}))
            assert isinstance(gone, ChildGone)
            assert gone.farewell == expected
            assert companion._proc is None

    async def program() -> None:
        explore.child("companion", *LEAVES)
        gone = await outcome(should_be.Companion("companion").send({"do": "leave"}))
        assert isinstance(gone, ChildGone)
        assert gone.farewell == expected, str(gone)

    really(main)
    holds(program)


def test_s1_8_a_start_that_is_cancelled_leaves_no_orphan() -> None:
    """S1.8: "Cancellation while the child is being started leaves no orphan." """

    async def main() -> None:
        for turns in range(10):
            companion = should_be.Companion(*COMMAND)
            starting = asyncio.create_task(companion.start())
            for _ in range(turns):
                await asyncio.sleep(0)
            starting.cancel()
            await asyncio.wait({starting})
            assert starting.cancelled() == (companion._proc is None)
            await companion.close()

    async def program() -> None:
        explore.child("companion", ANSWERS)
        companion = should_be.Companion("companion")
        await explore.victim(companion.start())
        await explore.victim(companion.restart())
        assert await companion.send({"do": "echo"}) == {"session": "one"}
        await companion.close()

    really(main)
    holds(program, 80, cancel=True)


# --- what the three have in common ---------------------------------------------------------------

VERSIONS: list[type[schedules.Talks]] = [
    as_reported.Companion,
    as_proposed.Companion,
    should_be.Companion,
]


@pytest.mark.parametrize("kind", VERSIONS)
def test_on_a_quiet_day_the_three_do_the_same(kind: type[schedules.Talks]) -> None:
    async def program() -> None:
        explore.child("companion", explore.Errs(b"hello\n"), ANSWERS)
        companion = kind("companion", grace=1)
        assert await companion.close() is None
        assert await companion.send({"do": "echo"}) == {"session": "one"}
        await companion.restart()
        explore.child("companion", *LEAVES)
        assert await companion.send({"do": "echo"}) == {"session": "one"}
        await companion.restart()
        gone = await outcome(companion.send({"do": "leave"}))
        assert isinstance(gone, ChildGone)
        assert gone.farewell is not None
        assert gone.farewell.status.code == 3

    holds(program, 1)


@pytest.mark.parametrize("kind", VERSIONS)
def test_one_that_does_not_mind_sigterm_is_killed_by_each_of_them(
    kind: type[schedules.Talks],
) -> None:
    async def program() -> None:
        explore.child("companion", explore.Ignores(15), ANSWERS, explore.Waits())
        companion = kind("companion", grace=1)
        await companion.send({"do": "echo"})
        assert await companion.close() == Farewell.of(-9, "")

    holds(program, 1)


# --- what else a reader of the program may rely on -----------------------------------------------


def test_an_answer_is_the_answer_to_its_own_question() -> None:
    """A question that is given up takes its child along: the next answer would be its answer."""

    def answer(line: bytes) -> bytes:
        return b'{"session": "one", "asked": %s}\n' % line.strip()

    async def program() -> None:
        explore.child("companion", explore.Hears(answer, lines=None))
        companion = should_be.Companion("companion")
        await explore.victim(companion.send({"number": 1}))
        message: Message = {"number": 2}
        assert (await companion.send(message))["asked"] == message
        await companion.close()

    holds(program, 100, cancel=True)


def test_an_answer_that_breaks_off_is_none() -> None:
    async def program() -> None:
        explore.child("companion", explore.Hears(lambda _: b'{"session": '), explore.Exits(1))
        gone = await outcome(should_be.Companion("companion").send({"do": "echo"}))
        assert isinstance(gone, ChildGone)
        assert "exit code 1" in str(gone)

    holds(program)


def test_where_there_is_no_process_table_to_read_a_process_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(alive, "_PROC", tmp_path)
    assert runs(os.getpid())
    with subprocess.Popen(["true"]) as ended:
        pass
    assert not runs(ended.pid)
