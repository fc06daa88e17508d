"""The children of this process are seen, whoever started them and wherever they are now."""

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
from typing import Any

import pytest

from holdfast import Process
from holdfast.census import children, owned_by, process_table, recording, take
from holdfast.census.children import Child
from holdfast.census.thing import Thing
from tests.runtime.processes import new_loop

SLEEP = ("sleep", "600")


@pytest.fixture
def new() -> Callable[[], list[Child]]:
    """The children that have come since the test began."""
    before = take(["children"])

    def look() -> list[Child]:
        found = take(["children"]).since(before)
        return [thing for thing in found if isinstance(thing, Child)]

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
def past_all_hooks() -> Iterator[int]:
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
    as long as this process, since semaphores may still come to be collected at any time."""
    return multiprocessing.get_context("spawn")


def come(wanted: Callable[[], bool]) -> None:
    """Wait for something that comes by itself."""
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


def born(thing: Thing) -> str:
    assert thing.birth is not None
    return thing.birth.origin.source


def test_a_process_without_children_has_none() -> None:
    program = (
        "from holdfast.census import take\n"
        "census = take(['children'])\n"
        "assert census.things == () and census.not_checked == (), census.things"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_running_child_is_seen_with_its_command_and_its_birth(
    new: Callable[[], list[Child]],
) -> None:
    with recording(), owned_by("the test"):
        process = subprocess.Popen(SLEEP)  # here
    try:
        has_a_command_line(process.pid)
        (child,) = new()
        assert child.code == "HF701"
        assert child.what == f"child process {process.pid} (sleep 600), running"
        assert child.stands() == ()
        assert child.part_of is None
        assert not child.passing
        assert not child.over()
        assert born(child) == "process = subprocess.Popen(SLEEP)  # here"
        assert child.birth is not None
        assert child.birth.owner == "the test"
        assert [child.key] == [again.key for again in new()]
    finally:
        process.kill()
        process.wait()
    assert child.over()
    assert new() == []


def test_a_child_of_asyncio_is_born_in_the_line_that_awaits_its_start(
    kind: str, new: Callable[[], list[Child]]
) -> None:
    async def main() -> None:
        process = await asyncio.create_subprocess_exec(*SLEEP)
        try:
            (child,) = new()
            assert child.pid == process.pid
            assert born(child) == "process = await asyncio.create_subprocess_exec(*SLEEP)"
        finally:
            process.kill()
            await process.wait()
        assert child.over()

    loop = new_loop(kind)
    try:
        with recording():
            loop.run_until_complete(main())
    finally:
        loop.close()


def test_a_child_started_in_a_task_of_the_runtime_is_born_where_the_program_asked_for_it(
    kind: str, new: Callable[[], list[Child]]
) -> None:
    async def main() -> None:
        async with Process(*SLEEP):  # here
            (child,) = new()
            assert born(child) == "async with Process(*SLEEP):  # here"
            assert child.birth is not None
            assert child.birth.package == "holdfast"

    loop = new_loop(kind)
    try:
        with recording():
            loop.run_until_complete(main())
    finally:
        loop.close()


def test_a_child_of_multiprocessing_is_born_in_the_line_that_starts_it(
    new: Callable[[], list[Child]], spawning: Any
) -> None:
    process = spawning.Process(target=time.sleep, args=(600,))
    with recording():
        process.start()  # here
    try:
        (child,) = new()
        assert child.pid == process.pid
        assert born(child) == "process.start()  # here"
    finally:
        process.kill()
        process.join()
        process.close()


def test_a_child_that_nobody_saw_start_has_no_birth(new: Callable[[], list[Child]]) -> None:
    with recording(), past_all_hooks() as pid:
        (child,) = new()
        assert (child.pid, child.code, child.birth) == (pid, "HF701", None)


def test_a_child_that_has_ended_is_a_zombie_and_looking_does_not_reap_it(
    new: Callable[[], list[Child]],
) -> None:
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
    try:
        end_of(process.pid)
        (child,) = new()
        assert child.code == "HF702"
        assert child.what.startswith(f"child process {process.pid} (")
        assert child.what.endswith("), a zombie")
        assert not child.over()
    finally:
        assert process.wait() == 7
    assert child.over()


def test_a_running_child_becomes_a_zombie_and_is_the_same_thing(
    new: Callable[[], list[Child]],
) -> None:
    with sleeping() as process:
        (child,) = new()
        key = child.key
        os.kill(process.pid, signal.SIGKILL)
        end_of(process.pid)
        assert not child.over()
        assert (child.code, child.key) == ("HF702", key)
        assert child.what == f"child process {process.pid} (sleep), a zombie"


def test_a_pid_that_was_given_out_again_is_another_child(
    new: Callable[[], list[Child]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(), sleeping():
        (first,) = new()
        whole_table = process_table.find

        def later(pid: int) -> process_table.Entry | None:
            entry = whole_table(pid)
            return entry and entry._replace(start=("later", entry.start))

        monkeypatch.setattr(process_table, "find", later)
        assert first.over()
        (second,) = new()
        assert second.pid == first.pid
        assert second.key != first.key
        assert first.birth is not None
        assert second.birth is None


def test_the_births_of_children_that_are_gone_are_forgotten() -> None:
    with recording():
        with sleeping() as process:
            assert process.pid in {pid for pid, _ in children._BIRTHS}
        take(["children"])
    assert process.pid not in {pid for pid, _ in children._BIRTHS}


def test_a_child_of_a_thread_that_has_ended_is_seen(new: Callable[[], list[Child]]) -> None:
    started: list[subprocess.Popen[bytes]] = []
    thread = threading.Thread(target=lambda: started.append(subprocess.Popen(SLEEP)))
    thread.start()
    thread.join()
    try:
        assert [child.pid for child in new()] == [started[0].pid]
    finally:
        started[0].kill()
        started[0].wait()


def test_a_child_is_seen_also_where_nobody_is_told_of_its_end(
    new: Callable[[], list[Child]],
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with sleeping() as process:
            assert [child.pid for child in new()] == [process.pid]
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_the_servants_of_multiprocessing_are_nobodys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracker: Any = resource_tracker
    tracker.ensure_running()
    pid = tracker._resource_tracker._pid
    has_a_command_line(pid, "resource_tracker import main")
    assert pid in {entry.pid for entry in process_table.children()}
    monkeypatch.setattr(children, "_NOBODYS", set())
    for _ in ("at first sight", "when it is known"):
        assert pid not in {child.pid for child in children.all_children()}
        assert pid in {known for known, _ in children._NOBODYS}


def test_a_servant_is_nobodys_once_it_can_be_recognised(
    new: Callable[[], list[Child]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with past_all_hooks():
        (child,) = new()
        assert not child.over()
        monkeypatch.setattr(children, "_SERVANTS", ("sleep",))
        assert child.over()
        assert new() == []


def test_the_processes_of_an_executor_are_part_of_it(
    new: Callable[[], list[Child]], spawning: Any
) -> None:
    before = take(["threads"])
    with recording(), ProcessPoolExecutor(1, mp_context=spawning) as executor:
        executor.submit(abs, -1).result()
        (whole,) = take(["threads"]).since(before)
        (child,) = new()
        assert child.part_of == whole.key
        assert not child.passing
    assert whole.over()
    assert child.over()


def test_the_processes_of_an_executor_that_was_shut_down_with_work_left_are_part_of_its_thread(
    new: Callable[[], list[Child]], spawning: Any
) -> None:
    before = take(["threads"])
    executor = ProcessPoolExecutor(1, mp_context=spawning)
    executor.submit(abs, -1).result()
    executor.submit(time.sleep, 600)
    (child,) = new()
    try:
        executor.shutdown(wait=False)
        (child,) = new()
        assert child.part_of in {thing.key for thing in take(["threads"]).since(before)}
        assert not child.passing
    finally:
        os.kill(child.pid, signal.SIGKILL)
    come(lambda: not take(["threads"]).since(before))
    assert new() == []


def test_the_idle_processes_of_an_executor_that_was_dropped_pass(
    new: Callable[[], list[Child]], spawning: Any
) -> None:
    before = take(["threads"])
    executor = ProcessPoolExecutor(1, mp_context=spawning)
    executor.submit(abs, -1).result()
    del executor
    gc.collect()
    assert all(child.passing for child in new())
    assert all(thing.passing for thing in take(["threads"]).since(before))
    come(lambda: not take(["threads"]).since(before))
    assert new() == []


def test_a_long_command_line_is_cut() -> None:
    before = take(["children"])
    with sleeping(
        sys.executable, "-c", "import time\n\n\ntime.sleep(600)  " + "#" * 100
    ) as process:
        (child,) = take(["children"]).since(before)
        called = child.what.removeprefix(f"child process {process.pid} (")
        called = called.removesuffix("), running")
        assert called.startswith(sys.executable[:50])
        assert called.endswith("...")
        assert "\n" not in called
        assert len(called) == 60


@pytest.mark.parametrize("way", ["_LISTED", "_PROC"])
def test_the_same_is_seen_without_the_list_and_without_proc(
    way: str, new: Callable[[], list[Child]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "_PROC":
        pytest.importorskip("psutil")
    monkeypatch.setattr(process_table, way, False)
    with recording(), sleeping() as process:
        (child,) = [thing for thing in new() if thing.pid == process.pid]
        assert child.code == "HF701"
        assert child.what == f"child process {process.pid} (sleep 600), running"
        assert born(child) == "process = subprocess.Popen(command or SLEEP)"
        os.kill(process.pid, signal.SIGKILL)
        end_of(process.pid)
        assert not child.over()
        assert child.code == "HF702"
        assert child.what.endswith("a zombie")
    assert child.over()
    assert list(children.blind_spots()) == []


def test_where_nobody_can_look_it_is_said(
    new: Callable[[], list[Child]], monkeypatch: pytest.MonkeyPatch
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


def test_a_start_that_fails_leaves_no_birth_and_raises_as_ever() -> None:
    with recording(), pytest.raises(FileNotFoundError):
        subprocess.Popen(["/nowhere/at/all"])


def test_after_the_recording_everything_is_as_it_was() -> None:
    before = (subprocess.Popen.__init__, BaseProcess.start)
    with recording():
        assert subprocess.Popen.__init__ is not before[0]
        assert BaseProcess.start is not before[1]
    assert (subprocess.Popen.__init__, BaseProcess.start) == before
