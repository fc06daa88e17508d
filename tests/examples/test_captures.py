"""Report 1, a chat bot that captures commands: what each version does, and S0.1 to S0.6 of the
right one."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from examples import show
from examples.captures import EXAMPLE, tmux
from examples.captures.chat import Key
from examples.captures.explored import SlowChat
from examples.captures.fixed import Captures
from examples.captures.shell import run
from examples.example import AS_PROPOSED, AS_REPORTED, FIXED
from handfast import explore, leaks, scripted

ALICE = Key(user=1, thread=7)


@pytest.mark.parametrize(
    ("version", "codes"),
    [
        (AS_REPORTED, ("HF203", "HF204", "HF303")),
        (AS_PROPOSED, ("HF201", "HF203", "HF204", "HF303")),
        (FIXED, ()),
    ],
)
def test_check_finds_the_bugs_and_nothing_else(version: str, codes: tuple[str, ...]) -> None:
    section = show.what_check_says(EXAMPLE, version)
    assert section.ok == (not codes)
    for code in ("HF201", "HF203", "HF204", "HF303"):
        assert (f" {code} " in section.text) == (code in codes)


def test_as_reported_two_commands_at_once_both_keep_editing() -> None:
    section = show.what_explore_finds(EXAMPLE, AS_REPORTED)
    assert "messages [1, 2] are edited concurrently" in section.text
    assert "0 changes" in section.text


def test_as_proposed_the_third_command_no_longer_cancels_the_second() -> None:
    section = show.what_explore_finds(EXAMPLE, AS_PROPOSED)
    assert "messages [2, 3] are edited concurrently" in section.text


def test_fixed_passes_all_explored_schedules() -> None:
    section = show.what_explore_finds(EXAMPLE, FIXED)
    assert section.ok, section.text


def test_as_reported_the_real_bot_leaks_a_capture_and_its_bash() -> None:
    section = show.what_leaks(EXAMPLE, AS_REPORTED)
    assert "1 tracked when the bot stopped" in section.text
    assert "HF102 task-left-over" in section.text
    assert "HF701 process-left-running" in section.text


def test_as_proposed_the_real_bot_leaks_as_well() -> None:
    assert "HF102 task-left-over" in show.what_leaks(EXAMPLE, AS_PROPOSED).text


def test_fixed_the_real_bot_leaks_nothing() -> None:
    section = show.what_leaks(EXAMPLE, FIXED)
    assert section.ok, section.text


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_fixed_captures_what_a_window_of_tmux_shows() -> None:
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
        async with leaks.no_leaks():
            texts, left = await program()
        assert left == 0
        assert texts[1].replace("\r", "") == "$ echo first; sleep 60\nfirst\n"

    asyncio.run(alone())
    sockets = Path(os.environ.get("TMUX_TMPDIR", "/tmp"), f"tmux-{os.getuid()}")
    assert not [each for each in sockets.glob(f"handfast-{os.getpid()}-*") if _answers(each)]


def _answers(server: Path) -> bool:
    command = ["tmux", "-S", str(server), "list-sessions"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


# --- what must hold ------------------------------------------------------------------------------


class Notes(SlowChat):
    """A chat that also keeps the texts."""

    def __init__(self, pause: float = 0.01) -> None:
        super().__init__(pause=pause)
        self.texts: dict[int, str] = {}
        self._changed = asyncio.Condition()

    async def edit(self, key: Key, message: int, text: str) -> None:
        if "broken" in text:
            raise OSError("the chat is closed")
        await super().edit(key, message, text)
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
        scripted.child("bash", scripted.Says(b"one\n"), scripted.Exits(0))
        captures = Captures(Notes(), run)
        await captures.command(ALICE, "make")
        await asyncio.sleep(1)
        assert len(captures) == 0
        await captures.close()

    # Cancelled at every step: before the first one, midway, and in its own clean-up.
    survives(program, cancel=True)


def test_s0_1_also_after_an_exception() -> None:
    async def program() -> None:
        scripted.child("bash", scripted.Says(b"broken\n"), scripted.Exits(0))
        captures = Captures(Notes(), run)
        await captures.command(ALICE, "make")
        await asyncio.sleep(1)
        assert len(captures) == 0
        await captures.close()

    # The scope reports the error to the loop, since no caller awaits the task.
    survives(program, ignore=("HF604",))


def test_s0_2_to_s0_4_one_at_a_time_and_the_replaced_one_has_no_effect() -> None:
    """S0.2 A predecessor that finishes late never removes or disturbs its successor. S0.3 At most
    one live task per key. S0.4 After a replacement returns, the superseded task produces no
    further effect."""

    async def program() -> None:
        scripted.child(
            "bash",
            scripted.On(15, scripted.Waits(0.05), scripted.Exits(1)),
            scripted.Says(b"one\n"),
            scripted.Waits(1),
            scripted.Says(b"two\n"),
        )
        chat = Notes()
        captures = Captures(chat, run)
        await asyncio.gather(*(captures.command(ALICE, f"make {n}") for n in range(3)))
        assert len(captures) == 1
        chat.edited.clear()
        await asyncio.sleep(3)
        assert set(chat.edited) <= {chat.messages}
        assert len(captures) == 0
        await captures.close()

    survives(program)


def test_s0_5_close_cancels_and_joins_all_of_them() -> None:
    """S0.5 Closing the owner cancels and joins all of them."""

    async def program() -> None:
        scripted.child(
            "bash", scripted.On(15, scripted.Waits(0.05), scripted.Exits(1)), scripted.Waits()
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
