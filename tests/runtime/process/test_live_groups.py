"""A22: no process group survives the program, however it ends; and a forked child kills none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from handfast._origin import Origin
from handfast._runtime.process import live_groups
from handfast._runtime.process.command import Command
from handfast._runtime.process.group import ProcessGroup, running_members
from handfast._runtime.process.live_groups import PendingStart

# A child and a grandchild that only SIGKILL ends. It prints when both run.
STUBBORN = "trap '' TERM INT; sleep 1000 & echo up; while :; do sleep 1; done"

PRELUDE = f"""
import asyncio, os, signal, sys, threading, handfast
signal.signal(signal.SIGINT, signal.default_int_handler)
async def main():
    async with handfast.Process("bash", "-c", {STUBBORN!r}, grace=1000) as process:
        await anext(process.stdout.lines())
        ready.set()
        print(process.pid, flush=True)
        await process.wait()
ready = threading.Event()
"""

PROGRAMS = {
    "two Ctrl-C": "asyncio.run(main())",
    "sys.exit in a handler": """
signal.signal(signal.SIGINT, lambda *_: sys.exit(3))
asyncio.run(main())
""",
    "a daemon thread": """
threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
ready.wait()
sys.stdin.readline()
""",
    "a loop that was never closed": """
loop = asyncio.new_event_loop()
async def begin():
    process = await handfast.Process("bash", "-c", sys.argv[1]).start()
    await anext(process.stdout.lines())
    print(process.pid, flush=True)
    return process
process = loop.run_until_complete(begin())
sys.stdin.readline()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_group_survives_the_program(name: str) -> None:
    """A22."""
    with subprocess.Popen(
        [sys.executable, "-c", PRELUDE + PROGRAMS[name], STUBBORN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as program:
        assert program.stdout is not None
        pgid = int(program.stdout.readline())
        assert len(list(running_members(pgid))) >= 2
        if name in ("two Ctrl-C", "sys.exit in a handler"):
            while program.poll() is None:  # the first one may come too early to count
                program.send_signal(signal.SIGINT)
                time.sleep(0.05)
        program.communicate(b"\n")
        while list(running_members(pgid)):
            time.sleep(0.001)


FORKED = f"""
import asyncio, os, sys, handfast
async def main():
    async with handfast.Process("bash", "-c", {STUBBORN!r}, grace=0) as process:
        await anext(process.stdout.lines())
        pid = os.fork()
        if not pid:
            try:
                process.pid
            except handfast.errors.WrongLoop as error:
                print("before a fork" in str(error), flush=True)
            del process
            sys.exit()  # runs the handlers of atexit, and drops the Process
        os.waitpid(pid, 0)
        await asyncio.sleep(0.05)
        print(process, flush=True)
asyncio.run(main())
"""


def test_a_forked_child_kills_nothing() -> None:
    """A22: the groups belong to the parent, at exit and when a copy of the Process is dropped."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, timeout=60)
    assert b"True\n" in done.stdout, done
    assert b", running>" in done.stdout, done


@contextmanager
def started(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as child:
        try:
            yield child
        finally:
            child.kill()


def pending(*argv: str) -> PendingStart:
    return PendingStart(Command(argv, None, None, Origin.here()))


def test_a_child_whose_start_was_interrupted_is_found_by_its_arguments() -> None:
    """A22: after the fork, and before the loop could report the pid."""
    start = pending("sleep", "1001")
    other = pending("sleep", "1002")
    with started("sleep", "1001") as child:
        assert list(other._children()) == []
        assert list(start._children()) == [child.pid]
        start.owner += 1  # as in a forked child
        assert list(start._children()) == []
        start.owner -= 1
        start.kill()
        assert child.wait() == -signal.SIGKILL


def test_a_script_is_found_behind_its_interpreter(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "script")
    with open(path, "w") as file:
        file.write("#!/bin/bash\necho up\nread -t 1000 < <(sleep 1000)\n")
    os.chmod(path, 0o755)
    start = pending(path)
    with started(path) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert list(start._children()) == [child.pid]
        start.kill()
        assert child.wait() == -signal.SIGKILL
    assert not start._runs_in(child.pid)


def test_a_child_that_has_ended_is_not_found() -> None:
    """It has no arguments, as one in the middle of an exec, and they do not come."""
    start = pending("true")
    with started("true") as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert list(start._children()) == []


def test_a_child_that_is_known_or_older_is_no_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_groups, "_groups", set())
    start = pending("sleep", "1003")
    with started("sleep", "1003") as child:
        live_groups.add_group(group := ProcessGroup(child.pid))
        assert list(start._children()) == []
        live_groups.remove_group(group)
        start.begun += 100_000
        assert list(start._children()) == []


def test_the_exit_waits_for_starts_of_other_threads_and_refuses_new_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A22: a daemon thread may be in the middle of a start."""
    monkeypatch.setattr(live_groups, "_exiting", False)
    monkeypatch.setattr(live_groups, "_groups", set())
    monkeypatch.setattr(live_groups, "_starts", set())
    begun, exiting = threading.Event(), threading.Event()
    command = Command(("sleep", "1004"), None, None, Origin.here())
    children: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        mine = live_groups.begin_start(command)
        begun.set()
        exiting.wait()
        child = subprocess.Popen(["sleep", "1004"], start_new_session=True)
        children.append(child)
        live_groups.add_group(ProcessGroup(child.pid))
        live_groups.end_start(mine)

    thread = threading.Thread(target=start)
    thread.start()
    begun.wait()
    monkeypatch.setattr(live_groups, "START_TIMEOUT", 60.0)
    sleep = time.sleep

    def first_pause(pause: float) -> None:
        exiting.set()
        sleep(pause)

    monkeypatch.setattr(time, "sleep", first_pause)
    live_groups.kill_all()
    thread.join()
    assert children[0].wait() == -signal.SIGKILL
    with pytest.raises(RuntimeError, match="the interpreter is exiting"):
        live_groups.begin_start(command)


def test_a_number_that_went_to_another_process_is_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A22, S1.3: our child was reaped by other code, and its pid was used again."""
    monkeypatch.setattr(live_groups, "_exiting", False)
    monkeypatch.setattr(live_groups, "_starts", {pending("no-such-program")})
    monkeypatch.setattr(live_groups, "_groups", {ProcessGroup(os.getppid())})
    signalled: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pgid, _: signalled.append(pgid))
    live_groups.kill_all()
    assert signalled == []
    monkeypatch.setattr(live_groups, "HAS_PROC", False)
    live_groups.kill_all()
    assert signalled == [os.getppid()]
