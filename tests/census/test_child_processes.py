"""Child processes (HF701, HF702) are listed, however they were started."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from handfast import Process
from handfast._census import owned_by, process_table, recording, take
from handfast._census.kinds import child_processes as children
from handfast._census.live_object import LiveObject
from tests.runtime.process.processes import new_loop

SLEEP = ("sleep", "600")


@pytest.fixture
def new() -> Callable[[], list[LiveObject]]:
    """The children that were started since the test began."""
    before = take(["children"])

    def look() -> list[LiveObject]:
        found = take(["children"]).since(before)
        return [live for live in found if not live.library]

    return look


@contextmanager
def sleeping(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command or SLEEP)
    try:
        has_a_command_line(process.pid)
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def past_all_patches() -> Iterator[int]:
    pid = os.posix_spawnp(SLEEP[0], SLEEP, dict(os.environ))
    try:
        has_a_command_line(pid, "sleep")
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.fixture
def spawning() -> Any:
    """multiprocessing, but not by fork: this process has threads. Its resource tracker stays for
    as long as this process, since semaphores may still come to be collected at any time. It is
    known by its command line, so it has to run already."""
    resource_tracker.ensure_running()
    pid = resource_tracker._resource_tracker._pid  # type: ignore[attr-defined]
    has_a_command_line(pid, "resource_tracker")
    return multiprocessing.get_context("spawn")


def come(wanted: Callable[[], bool]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + 60
    while not wanted() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert wanted()


def has_a_command_line(pid: int, text: str = "") -> None:
    """Wait for the last step of its exec, which is after `Popen` is back."""
    if process_table.can_be_read():
        come(lambda: text in process_table.command_line(pid) != "")


def end_of(pid: int) -> None:
    """Wait until a child has ended, and leave it a zombie."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def created_by(live: LiveObject) -> str:
    assert live.creation is not None
    return live.creation.origin.source


def test_a_process_without_children_has_none() -> None:
    program = (
        "from handfast._census import take\n"
        "census = take(['children'])\n"
        "assert census.objects == () and census.not_checked == (), census.objects"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_running_child_is_listed_with_its_command_and_its_creation(
    new: Callable[[], list[LiveObject]],
) -> None:
    with recording(), owned_by("the test"):
        process = subprocess.Popen(SLEEP)  # here
    try:
        has_a_command_line(process.pid)
        (child,) = new()
        assert child.code == "HF701"
        assert child.what == f"child process {process.pid} (sleep 600), running"
        assert child.waiting_at() == ()
        assert child.part_of() is None
        assert not child.ends_by_itself
        assert not child.ended()
        assert created_by(child) == "process = subprocess.Popen(SLEEP)  # here"
        assert child.creation is not None
        assert child.creation.owner == "the test"
        assert [child.key] == [again.key for again in new()]
    finally:
        process.kill()
        process.wait()
    assert child.ended()
    assert new() == []


def test_a_child_of_asyncio_is_created_in_the_line_that_awaits_its_start(
    kind: str, new: Callable[[], list[LiveObject]]
) -> None:
    async def main() -> None:
        process = await asyncio.create_subprocess_exec(*SLEEP)
        try:
            (child,) = new()
            assert child.target == process.pid
            assert created_by(child) == "process = await asyncio.create_subprocess_exec(*SLEEP)"
        finally:
            process.kill()
            await process.wait()
        assert child.ended()

    loop = new_loop(kind)
    try:
        with recording():
            loop.run_until_complete(main())
    finally:
        loop.close()


def test_a_child_started_in_a_task_of_the_runtime_has_the_line_of_the_program(
    kind: str, new: Callable[[], list[LiveObject]]
) -> None:
    async def main() -> None:
        async with Process(*SLEEP):  # here
            (child,) = new()
            assert created_by(child) == "async with Process(*SLEEP):  # here"
            assert child.creation is not None
            assert child.creation.package == "handfast"

    loop = new_loop(kind)
    try:
        with recording():
            loop.run_until_complete(main())
    finally:
        loop.close()


def test_a_child_of_multiprocessing_is_created_in_the_line_that_starts_it(
    new: Callable[[], list[LiveObject]], spawning: Any
) -> None:
    process = spawning.Process(target=time.sleep, args=(600,))
    with recording():
        process.start()  # here
    try:
        (child,) = new()
        assert child.target == process.pid
        assert created_by(child) == "process.start()  # here"
    finally:
        process.kill()
        process.join()
        process.close()


def test_a_child_started_before_the_recording_has_no_creation(
    new: Callable[[], list[LiveObject]],
) -> None:
    with recording(), past_all_patches() as pid:
        (child,) = new()
        assert (child.target, child.code, child.creation) == (pid, "HF701", None)


def test_a_child_that_has_ended_is_a_zombie_and_listing_does_not_reap_it(
    new: Callable[[], list[LiveObject]],
) -> None:
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
    try:
        end_of(process.pid)
        (child,) = new()
        assert child.code == "HF702"
        assert child.what.startswith(f"child process {process.pid} (")
        assert child.what.endswith("), a zombie")
        assert not child.ended()
    finally:
        assert process.wait() == 7
    assert child.ended()


def test_a_running_child_becomes_a_zombie_and_is_the_same_object(
    new: Callable[[], list[LiveObject]],
) -> None:
    with sleeping() as process:
        (child,) = new()
        key = child.key
        os.kill(process.pid, signal.SIGKILL)
        end_of(process.pid)
        assert not child.ended()
        (child,) = new()
        assert (child.code, child.key) == ("HF702", key)
        assert child.what == f"child process {process.pid} (sleep), a zombie"


def test_a_reused_pid_is_another_child(
    new: Callable[[], list[LiveObject]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(), sleeping():
        (first,) = new()
        whole_table = process_table.find

        def later(pid: int) -> process_table.Entry | None:
            entry = whole_table(pid)
            return entry and entry._replace(start=("later", entry.start))

        monkeypatch.setattr(process_table, "find", later)
        assert first.ended()
        (second,) = new()
        assert second.target == first.target
        assert second.key != first.key
        assert first.creation is not None
        assert second.creation is None


def test_the_creations_of_children_that_are_gone_are_dropped() -> None:
    with recording():
        with sleeping() as process:
            assert process.pid in {pid for pid, _ in children._CREATIONS}
        take(["children"])
    assert process.pid not in {pid for pid, _ in children._CREATIONS}


def test_a_child_of_a_thread_that_has_ended_is_listed(new: Callable[[], list[LiveObject]]) -> None:
    started: list[subprocess.Popen[bytes]] = []
    thread = threading.Thread(target=lambda: started.append(subprocess.Popen(SLEEP)))
    thread.start()
    thread.join()
    try:
        assert [child.target for child in new()] == [started[0].pid]
    finally:
        started[0].kill()
        started[0].wait()


def test_a_child_is_listed_also_if_sigchld_is_ignored(
    new: Callable[[], list[LiveObject]],
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with sleeping() as process:
            assert [child.target for child in new()] == [process.pid]
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_the_helpers_of_multiprocessing_belong_to_a_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracker: Any = resource_tracker
    tracker.ensure_running()
    pid = tracker._resource_tracker._pid
    has_a_command_line(pid, "resource_tracker import main")
    assert pid in {entry.pid for entry in process_table.children()}
    monkeypatch.setattr(children, "_LIBRARIES", {})
    for _ in ("at first sight", "when it is known"):
        libraries = {child.target: child.library for child in children.children()}
        assert libraries[pid] == "multiprocessing"
        assert pid in {known for known, _ in children._LIBRARIES}


def test_a_helper_belongs_to_a_library_once_it_can_be_recognised(
    new: Callable[[], list[LiveObject]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with past_all_patches():
        (child,) = new()
        assert not child.ended()
        servant = lambda what, command: "a library" if "sleep" in command else ""  # noqa: E731
        monkeypatch.setattr(children, "library_that_keeps", servant)
        assert new() == []


def test_the_processes_of_an_executor_are_part_of_it(
    new: Callable[[], list[LiveObject]], spawning: Any
) -> None:
    before = take(["threads"])
    with recording(), ProcessPoolExecutor(1, mp_context=spawning) as executor:
        executor.submit(abs, -1).result()
        (whole,) = take(["threads"]).since(before)
        (child,) = new()
        assert child.part_of() == whole.key
        assert not child.ends_by_itself
    assert whole.ended()
    assert child.ended()


def test_the_processes_of_an_executor_that_was_shut_down_with_work_left_are_part_of_its_thread(
    new: Callable[[], list[LiveObject]], spawning: Any
) -> None:
    before = take(["threads"])
    executor = ProcessPoolExecutor(1, mp_context=spawning)
    executor.submit(abs, -1).result()
    executor.submit(time.sleep, 600)
    (child,) = new()
    try:
        executor.shutdown(wait=False)
        (child,) = new()
        assert child.part_of() in {live.key for live in take(["threads"]).since(before)}
        assert not child.ends_by_itself
    finally:
        os.kill(child.target, signal.SIGKILL)
    come(lambda: not take(["threads"]).since(before))
    assert new() == []


def test_the_idle_processes_of_a_dropped_executor_end_by_themselves(
    new: Callable[[], list[LiveObject]], spawning: Any
) -> None:
    before = take(["threads"])
    executor = ProcessPoolExecutor(1, mp_context=spawning)
    executor.submit(abs, -1).result()
    del executor
    gc.collect()
    assert all(child.ends_by_itself for child in new())
    assert all(live.ends_by_itself for live in take(["threads"]).since(before))
    come(lambda: not take(["threads"]).since(before))
    assert new() == []


def _begins_with() -> str:
    """How the command line of a Python begins."""
    code = "print(open('/proc/self/cmdline').read().split(chr(0))[0])"
    if not Path("/proc/self/cmdline").exists():
        return sys.executable
    return subprocess.check_output([sys.executable, "-c", code], text=True).strip()


def test_a_long_command_line_is_cut() -> None:
    before = take(["children"])
    with sleeping(
        sys.executable, "-c", "import time\n\n\ntime.sleep(600)  " + "#" * 100
    ) as process:
        begins = _begins_with()
        # `sys.executable` may be a script, which execs the interpreter a moment later.
        come(lambda: process_table.command_line(process.pid).startswith(begins))
        (child,) = take(["children"]).since(before)
        called = child.what.removeprefix(f"child process {process.pid} (")
        called = called.removesuffix("), running")
        assert called.startswith(begins[:50])
        assert called.endswith("...")
        assert "\n" not in called
        assert len(called) == 60


@pytest.mark.parametrize("way", ["_LISTED", "_PROC"])
def test_the_same_is_listed_without_the_children_file_and_without_proc(
    way: str, new: Callable[[], list[LiveObject]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "_PROC":
        pytest.importorskip("psutil")
    monkeypatch.setattr(process_table, way, False)
    with recording(), sleeping() as process:
        (child,) = [live for live in new() if live.target == process.pid]
        assert child.code == "HF701"
        assert child.what == f"child process {process.pid} (sleep 600), running"
        assert created_by(child) == "process = subprocess.Popen(command or SLEEP)"
        os.kill(process.pid, signal.SIGKILL)
        end_of(process.pid)
        assert not child.ended()
        (zombie,) = [live for live in new() if live.target == process.pid]
        assert zombie.code == "HF702"
        assert zombie.what.endswith("a zombie")
    assert child.ended()
    assert list(children._not_checked(None)) == []


def test_what_cannot_be_listed_is_not_checked(
    new: Callable[[], list[LiveObject]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_table, "_PROC", False)
    monkeypatch.setattr(process_table, "_psutil", lambda: None)
    with recording(), sleeping() as process:
        assert new() == []
        assert process_table.find(process.pid) is None
        assert process_table.command_line(process.pid) == ""
        assert take(["children"]).not_checked == (
            "children cannot be seen: /proc is not here and psutil is not installed",
        )


def test_a_start_that_fails_records_nothing_and_raises() -> None:
    with recording(), pytest.raises(FileNotFoundError):
        subprocess.Popen(["/nowhere/at/all"])


def test_after_the_recording_the_originals_are_restored() -> None:
    before = (subprocess.Popen.__init__, BaseProcess.start)
    with recording():
        assert subprocess.Popen.__init__ is not before[0]
        assert BaseProcess.start is not before[1]
    assert (subprocess.Popen.__init__, BaseProcess.start) == before
