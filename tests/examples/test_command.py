"""`python -m examples` as a user runs it: Ctrl-C ends it, and no process is left."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# langgraph imports langsmith, which calls on 3.14 and later what 3.16 is to remove.
LANGSMITH = "ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning"


def marked(mark: str) -> list[str]:
    """The command lines of all processes that have this mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has ended meanwhile, or belongs to another user
            continue
    return found


def start(mark: str) -> subprocess.Popen[str]:
    name, _, value = mark.partition("=")
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-W", LANGSMITH, "-m", "examples"],
        env={**os.environ, name: value},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def mark() -> str:
    """An environment variable that identifies a process and everything that it starts."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("looks for orphans in /proc")
    return f"HANDFAST_TEST_MARK={uuid.uuid4()}"


@pytest.mark.parametrize("seen", ["1. A child fails", "4. Work from a thread"])
def test_ctrl_c_ends_every_child(seen: str, mark: str) -> None:
    """After step 1 a scope with a straggler is open; after step 4 a child process starts."""
    with start(mark) as command:
        assert command.stdout is not None
        for text in command.stdout:
            if seen in text:
                break
        command.send_signal(signal.SIGINT)
        _, errors = command.communicate(timeout=30)
    assert (command.returncode, errors.strip()) == (130, "")
    assert marked(mark) == []


def test_no_process_is_left_at_the_end(mark: str) -> None:
    with start(mark) as command:
        _, errors = command.communicate(timeout=120)
    assert (command.returncode, errors) == (0, "")
    assert marked(mark) == []
