"""Seed 000, a chat bot that captures commands: what each version does, and S0.1 to S0.6 of the
right one."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from holdfast import explore, leaks
from holdfast.casebook import telling
from holdfast.casebook.captures import CASE, tmux
from holdfast.casebook.captures.as_it_should_be import Captures
from holdfast.casebook.captures.chat import Key
from holdfast.casebook.captures.shell import run
from holdfast.casebook.case import AS_IT_SHOULD_BE, AS_PROPOSED, AS_REPORTED

ALICE = Key(user=1, thread=7)


@pytest.mark.parametrize(
    ("version", "codes"),
    [
        (AS_REPORTED, ("HF203", "HF204", "HF303")),
        (AS_PROPOSED, ("HF201", "HF203", "HF204", "HF303")),
        (AS_IT_SHOULD_BE, ()),
    ],
)
def test_check_names_what_is_wrong_and_nothing_else(version: str, codes: tuple[str, ...]) -> None:
    chapter = telling.what_check_says(CASE, version)
    assert chapter.went_well == (not codes)
    for code in ("HF201", "HF203", "HF204", "HF303"):
        assert (f" {code} " in chapter.text) == (code in codes)


def test_as_reported_two_commands_at_once_both_go_on_editing() -> None:
    chapter = telling.what_explore_finds(CASE, AS_REPORTED)
    assert "messages [1, 2] are edited side by side" in chapter.text
    assert "0 departures" in chapter.text


def test_as_proposed_the_third_command_no_longer_cancels_the_second() -> None:
    chapter = telling.what_explore_finds(CASE, AS_PROPOSED)
    assert "messages [2, 3] are edited side by side" in chapter.text


def test_as_it_should_be_survives_every_schedule_that_is_tried() -> None:
    chapter = telling.what_explore_finds(CASE, AS_IT_SHOULD_BE)
    assert chapter.went_well, chapter.text


def test_as_reported_the_real_bot_leaves_a_capture_and_its_bash_behind() -> None:
    chapter = telling.what_is_left(CASE, AS_REPORTED)
    assert "1 tracked when the bot stopped" in chapter.text
    assert "HF102 task-left-over" in chapter.text
    assert "HF701 process-left-running" in chapter.text


def test_as_proposed_the_real_bot_does_so_as_well() -> None:
    assert "HF102 task-left-over" in telling.what_is_left(CASE, AS_PROPOSED).text


def test_as_it_should_be_the_real_bot_leaves_nothing() -> None:
    chapter = telling.what_is_left(CASE, AS_IT_SHOULD_BE)
    assert chapter.went_well, chapter.text


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_as_it_should_be_captures_what_a_window_of_tmux_shows() -> None:
    async def program() -> tuple[dict[int, str], int]:
        chat = Notes(pause=0)
        captures = Captures(chat, tmux.run)
        await captures.command(ALICE, "echo first; sleep 60")
        await chat.shows("first")
        await captures.command(ALICE, "printf 'd\\303\\251j\\303\\240 vu\\n'; sleep 60")
        await chat.shows("déjà vu")
        await captures.close()
        return chat.texts, len(captures)

    async def alone() -> None:
        async with leaks.watch():
            texts, left = await program()
        assert left == 0
        assert texts[1].replace("\r", "") == "$ echo first; sleep 60\nfirst\n"

    asyncio.run(alone())
    sockets = Path(os.environ.get("TMUX_TMPDIR", "/tmp"), f"tmux-{os.getuid()}")
    assert not [each for each in sockets.glob(f"holdfast-{os.getpid()}-*") if _answers(each)]


def _answers(server: Path) -> bool:
    asked = ["tmux", "-S", str(server), "list-sessions"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


# --- what must hold ------------------------------------------------------------------------------


class Notes:
    """A chat that notes what is edited, and by whom."""

    def __init__(self, pause: float = 0.01) -> None:
        self.messages = 0
        self.edits: list[int] = []
        self.texts: dict[int, str] = {}
        self._pause = pause
        self._changed = asyncio.Condition()

    async def send(self, key: Key, text: str) -> int:
        await asyncio.sleep(self._pause)
        self.messages += 1
        return self.messages

    async def edit(self, key: Key, message: int, text: str) -> None:
        if "broken" in text:
            raise OSError("the chat is gone")
        await asyncio.sleep(self._pause)
        self.edits.append(message)
        async with self._changed:
            self.texts[message] = text
            self._changed.notify_all()

    async def shows(self, words: str) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: any(words in each for each in self.texts.values()))


def survives(program: Callable[[], Awaitable[None]], **options: object) -> None:
    result = explore.explore(program, schedules=150, **options)  # type: ignore[arg-type]
    assert result.counterexample is None, result.counterexample.report()


def test_s0_1_the_entry_is_gone_after_any_end() -> None:
    """S0.1 After any end the entry is gone if and only if it is that task's own."""

    async def program() -> None:
        explore.child("bash", explore.Says(b"one\n"), explore.Exits(0))
        captures = Captures(Notes(), run)
        await captures.command(ALICE, "make")
        await asyncio.sleep(1)
        assert len(captures) == 0
        await captures.close()

    # Cancelled at every step: before the first one, midway, and in its own clean-up.
    survives(program, cancel=True)


def test_s0_1_also_after_an_exception() -> None:
    async def program() -> None:
        explore.child("bash", explore.Says(b"broken\n"), explore.Exits(0))
        captures = Captures(Notes(), run)
        await captures.command(ALICE, "make")
        await asyncio.sleep(1)
        assert len(captures) == 0
        await captures.close()

    # The scope tells the loop of the error, and that is right: nobody else asked for it.
    survives(program, ignore=("HF604",))


def test_s0_2_to_s0_4_one_at_a_time_and_the_superseded_is_silent() -> None:
    """S0.2 A predecessor that finishes late never removes or disturbs its successor. S0.3 At most
    one live task per key. S0.4 After a replacement returns, the superseded task produces no
    further effect."""

    async def program() -> None:
        explore.child(
            "bash",
            explore.On(15, explore.Waits(0.05), explore.Exits(1)),
            explore.Says(b"one\n"),
            explore.Waits(1),
            explore.Says(b"two\n"),
        )
        chat = Notes()
        captures = Captures(chat, run)
        await asyncio.gather(*(captures.command(ALICE, f"make {n}") for n in range(3)))
        assert len(captures) == 1
        chat.edits.clear()
        await asyncio.sleep(3)
        assert set(chat.edits) <= {chat.messages}
        assert len(captures) == 0
        await captures.close()

    survives(program)


def test_s0_5_close_cancels_and_joins_all_of_them() -> None:
    """S0.5 Closing the owner cancels and joins all of them."""

    async def program() -> None:
        explore.child(
            "bash", explore.On(15, explore.Waits(0.05), explore.Exits(1)), explore.Waits()
        )
        captures = Captures(Notes(), run)
        for user in range(3):
            await captures.command(Key(user, 0), "make")
        report = await captures.close()
        assert len(report.cancelled) == 3
        assert len(asyncio.all_tasks()) == 1

    survives(program)


def test_s0_6_many_rapid_replacements_leave_no_entry() -> None:
    """S0.6 Rapid replacements on one key, and one each on many keys, leave no entry. (The numbers of
    the property are tried with the slots themselves.)"""

    async def program() -> None:
        captures = Captures(Notes(pause=3600), run)
        for _ in range(2_000):
            await captures.command(ALICE, "make")
        for user in range(2_000):
            await captures.command(Key(user, 1), "make")
        assert len(captures) == 2_001
        await captures.close()
        assert len(captures) == 0
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(program())
