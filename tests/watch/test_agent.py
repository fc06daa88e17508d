"""The agent in its process: start and stop, forks, loops in threads, a blocked loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import handfast
from handfast import watch
from handfast._watch.agent import agent
from handfast._watch.recording import event_loops
from handfast._watch.recording.loop_lag import LoopLag, stack_in_loop
from handfast._watch.recording.shown_text import LineTexts, clean
from tests.watch.watched_program import line_from, program

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs Unix sockets"),
    pytest.mark.usefixtures("runtime_folder"),
]


def sockets_in(folder: Path) -> list[str]:
    return os.listdir(folder / "handfast")


def threads_of_the_watch() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("handfast")]


# --- start and stop ------------------------------------------------------------------------------


def test_starting_and_stopping_twice(runtime_folder: Path) -> None:
    for _ in range(2):
        first = watch.serve("one")
        second = watch.serve("two")
        assert first.socket == second.socket
        (process,) = watch.processes()
        assert process.program == "one", "the watch that runs stays as it is"
        second.stop()
        first.stop()
        first.stop()
        assert sockets_in(runtime_folder) == []
        assert threads_of_the_watch() == []


def test_stopping_an_old_watch_does_not_stop_a_new_one() -> None:
    with watch.serve() as old:
        old.stop()
        with watch.serve() as new:
            old.stop()
            assert os.path.exists(new.socket)


def test_a_socket_that_was_replaced_is_not_removed(runtime_folder: Path) -> None:
    with watch.serve() as served:
        os.unlink(served.socket)
        Path(served.socket).touch()
    assert len(sockets_in(runtime_folder)) == 1


def test_a_process_without_a_loop_is_shown() -> None:
    with watch.serve():
        taken = watch.snapshot()
        running = [loop for loop in taken.loops if loop.running]
        assert (running, taken.alive, taken.not_checked) == ([], 0, ())


def test_without_the_agent_a_snapshot_has_tasks_and_says_what_is_missing() -> None:
    async def main() -> watch.Snapshot:
        return watch.snapshot()

    taken = asyncio.run(main())
    assert [task.coroutine.rpartition(".")[2] for task in taken.tasks] == ["main"]
    assert (taken.tasks[0].place, taken.tasks[0].age) == (None, None)
    assert any("The watch is off in this process" in each for each in taken.not_checked)


def test_tasks_from_before_the_watch_have_no_place_and_come_first() -> None:
    async def main() -> watch.Snapshot:
        older = asyncio.create_task(asyncio.Event().wait(), name="older")
        await asyncio.sleep(0)
        with watch.serve():
            younger = asyncio.create_task(asyncio.Event().wait(), name="younger")
            await asyncio.sleep(0)
            taken = watch.snapshot()
        older.cancel()
        younger.cancel()
        return taken

    taken = asyncio.run(main())
    names = [task.name for task in taken.tasks]
    assert names[-1] == "younger"
    assert {task.name: task.place is None for task in taken.tasks}["older"]
    assert any("Tasks without a place of creation: 2." in each for each in taken.not_checked)
    # What they wait for is seen all the same.
    assert taken.tasks[names.index("older")].waits_for == "Event.wait"


def test_an_agent_that_cannot_start_leaves_nothing(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise RuntimeError("no loops today")

    before = asyncio.BaseEventLoop.create_task
    monkeypatch.setattr(event_loops, "watch_loops", fails)
    with pytest.raises(RuntimeError, match="no loops today"):
        watch.serve()
    assert sockets_in(runtime_folder) == []
    assert threads_of_the_watch() == []
    assert asyncio.BaseEventLoop.create_task is before
    assert agent.current() is None


# --- loops ---------------------------------------------------------------------------------------


def test_loops_in_several_threads_are_found_whenever_they_were_made(
    new_runner: Callable[[], asyncio.Runner],
) -> None:
    started = threading.Barrier(3)
    stop = threading.Event()

    async def main() -> None:
        await asyncio.to_thread(started.wait)
        await asyncio.to_thread(stop.wait)

    def run() -> None:
        with new_runner() as runner:
            runner.run(main())

    threads = [threading.Thread(target=run, name=f"loop {number}") for number in range(2)]
    threads[0].start()
    while started.n_waiting == 0:  # its loop is older than the watch
        pass
    with watch.serve():
        threads[1].start()
        started.wait()
        loops = [loop for loop in watch.snapshot().loops if loop.running]
        while {loop.thread for loop in loops} != {"loop 0", "loop 1"}:
            loops = [loop for loop in watch.snapshot().loops if loop.running]
        assert [loop.tasks for loop in loops] == [1, 1]
        assert all(loop.kind in ("SelectorEventLoop", "uvloop.Loop") for loop in loops)
        stop.set()
        for thread in threads:
            thread.join()


def test_uvloop_that_is_imported_later_is_watched(tmp_path: Path, runtime_folder: Path) -> None:
    pytest.importorskip("uvloop")
    source = """
import asyncio, handfast.watch
handfast.watch.serve()
import uvloop
async def main():
    task = asyncio.create_task(asyncio.sleep(0))
    taken = handfast.watch.snapshot()
    print(taken.loops[0].kind, [place.function for place in taken.places], flush=True)
    await task
with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
"""
    with program(source, tmp_path) as running:
        assert line_from(running) == "uvloop.Loop ['<module>', 'main']"


def block_until(event: threading.Event) -> None:
    event.wait()


def test_a_blocked_loop_is_shown_with_the_frame_that_blocks_it(
    new_runner: Callable[[], asyncio.Runner],
) -> None:
    seen = threading.Event()
    found: list[watch.LoopState] = []

    def look() -> None:
        with watch.connect(os.getpid()) as connection:
            while not found:
                found.extend(loop for loop in connection.summary().loops if loop.blocked_at)
            # The line is noted while the loop is blocked, and counted when it runs again.
            while not any(lag._line for lag in lags()):
                pass
            seen.set()
            while not (slow := [each for loop in connection.summary().loops for each in loop.slow]):
                pass
            counted.extend(slow)

    def lags() -> list[LoopLag]:
        current = agent.current()
        assert current is not None
        return list(current._lags._lags.values())

    counted: list[watch.SlowCallback] = []

    async def main() -> None:
        looking = asyncio.ensure_future(asyncio.to_thread(look))
        while not any(lag._lags for lag in lags()):  # so that the thread of a uvloop is known
            await asyncio.sleep(0.001)
        block_until(seen)
        await looking

    with watch.serve(), new_runner() as runner:
        runner.run(main())
    (loop, *_) = found
    assert loop.blocked_for > 0
    assert loop.blocked_at[-2].endswith("main")
    assert loop.blocked_at[-1].endswith(" in block_until")
    assert loop.thread == "MainThread"
    assert [each.line for each in counted] == [loop.blocked_at[-1]]
    assert counted[0].count == 1
    assert counted[0].worst >= 50


def test_lag_is_measured_and_an_idle_loop_is_not_blocked() -> None:
    async def main() -> watch.LoopState:
        while True:
            await asyncio.sleep(0.01)
            (state,) = (loop for loop in watch.snapshot(0).loops if loop.running)
            if state.lag_p50 is not None:
                return state

    with watch.serve():
        state = asyncio.run(main())
    assert state.lag_p50 is not None
    assert state.lag_p99 is not None
    assert state.lag_worst is not None
    assert 0 <= state.lag_p50 <= state.lag_p99 <= state.lag_worst


def test_a_loop_that_stops_and_runs_again_was_not_late() -> None:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        lag = LoopLag(loop)
        # It was posted, and the loop stopped before the callback ran.
        lag._number, lag._posted = 1, time.monotonic() - 100
        lag.post()
        assert lag.late_for() == 0
        lag._ran(1)
        state = lag.state(0, LineTexts())
        assert state is not None
        assert state.lag_worst is None


def test_frames_of_a_waiting_loop_are_no_stack() -> None:
    found: list[tuple[str, ...]] = []

    async def main() -> None:
        found.append(stack_in_loop(sys._getframe(), LineTexts()))

    asyncio.run(main())
    (stack,) = found
    assert [line.rpartition(".")[2] for line in stack] == ["main"], "nothing around the loop"
    assert stack_in_loop(None, LineTexts()) == ()


# --- scopes --------------------------------------------------------------------------------------


def test_scopes_are_shown_with_their_tasks_and_parents() -> None:
    async def main() -> watch.Snapshot:
        async with handfast.Scope("outer") as outer:
            inner = await outer.hold(handfast.Scope("inner"))
            await outer.hold(handfast.Scope("empty"))
            inner.spawn(asyncio.Event().wait(), name="deep")
            outer.spawn(asyncio.Event().wait(), name="flat")
            await asyncio.sleep(0)
            taken = watch.snapshot()
            outer.cancel()
        return taken

    with watch.serve():
        taken = asyncio.run(main())
    scopes = {scope.name: scope for scope in taken.scopes}
    assert set(scopes) == {"outer", "inner", "empty"}
    assert scopes["inner"].parent == scopes["empty"].parent == scopes["outer"].id
    assert scopes["empty"].tasks == 0
    assert scopes["outer"].parent is None
    assert scopes["inner"].state == "open"
    assert scopes["inner"].tasks == 1
    assert " in test_scopes_are_shown" in scopes["inner"].created_at
    of = {task.name: task.scope for task in taken.tasks}
    assert of["deep"] == scopes["inner"].id
    assert of["flat"] == scopes["outer"].id
    # The owner of what is held, and not its stand-in on asyncio's list.
    held = [task for task in taken.tasks if task.name.startswith("hold")]
    assert {task.scope for task in held} == {scopes["outer"].id}
    assert len(held) == 2
    assert all(task.place is not None for task in held)


# --- what a snapshot says ------------------------------------------------------------------------


def test_what_tasks_await() -> None:
    first: Any = None
    second: Any = None

    async def wait_for_it(awaited: Any) -> None:
        await awaited

    async def gathered() -> None:
        await asyncio.gather(first, second)

    async def main() -> watch.Snapshot:
        nonlocal first, second
        first = asyncio.create_task(asyncio.Queue[None]().get(), name="first")
        second = asyncio.create_task(asyncio.sleep(1000), name="second")
        one = asyncio.create_task(wait_for_it(first), name="one")
        both = asyncio.create_task(gathered(), name="both")
        bare = asyncio.create_task(
            wait_for_it(asyncio.get_running_loop().create_future()), name="bare"
        )
        await asyncio.sleep(0)
        taken = watch.snapshot()
        for task in (first, second, one, both, bare):
            task.cancel()
        return taken

    with watch.serve():
        taken = asyncio.run(main())
    tasks = {task.name: task for task in taken.tasks}
    assert tasks["first"].waits_for == "Queue.get"
    assert tasks["second"].waits_for == "sleep"
    assert tasks["one"].waits_for == "task 'first'"
    assert tasks["one"].awaits == (tasks["first"].id,)
    assert set(tasks["both"].awaits) == {tasks["first"].id, tasks["second"].id}
    assert tasks["bare"].waits_for == "Future"
    assert tasks["bare"].waiting_at[-1].endswith("wait_for_it")
    running = next(task for task in taken.tasks if task.coroutine.endswith("main"))
    assert (running.waiting_at, running.waits_for) == ((), "")


def test_places_have_ages_and_where_most_of_their_tasks_wait() -> None:
    async def worker(queue: asyncio.Queue[None]) -> None:
        await queue.get()

    async def main() -> watch.Snapshot:
        queue = asyncio.Queue[None]()
        tasks = [asyncio.create_task(worker(queue)) for _ in range(20)]
        await asyncio.sleep(0)
        tasks.pop().cancel()
        await asyncio.sleep(0)
        taken = watch.snapshot(0)
        for task in tasks:
            task.cancel()
        return taken

    with watch.serve():
        taken = asyncio.run(main())
    (place,) = (each for each in taken.places if each.coroutine.endswith("worker"))
    assert (place.alive, place.created, place.finished) == (19, 20, 1)
    assert sum(place.ages) == 19
    assert place.oldest is not None
    assert place.oldest >= 0
    assert place.waiting_at.startswith("Queue.get ← ")
    assert place.waiting_at.endswith("worker")
    assert place.file.endswith("test_agent.py")


def test_the_sum_of_the_loops_is_the_number_of_tasks() -> None:
    async def main() -> watch.Snapshot:
        tasks = [asyncio.create_task(asyncio.sleep(1000)) for _ in range(5000)]
        await asyncio.sleep(0)
        taken = watch.snapshot(100)
        for task in tasks:
            task.cancel()
        return taken

    with watch.serve():
        taken = asyncio.run(main())
    assert taken.alive == 5001
    assert len(taken.tasks) == 100
    assert taken.tasks_left_out == 4901
    ages = [task.age for task in taken.tasks if task.age is not None]
    assert ages == sorted(ages, reverse=True)


def test_names_are_cut_and_control_characters_removed() -> None:
    assert clean("plain é 漢") == "plain é 漢"
    assert clean("\x1b]0;title\x07\n\u202e\x9b") == "?]0;title????"
    assert clean("x" * 500) == "x" * 199 + "…"


def test_what_a_forked_child_does_first() -> None:
    # A real fork is tested below; its coverage is not measured.
    abandoned = agent.Agent("parent")
    abandoned.dump_on(["close"], Path("."), 5.0)
    abandoned.abandon()
    agent._after_fork()
    assert agent.current() is None
    with watch.serve("child"):
        assert [each.program for each in watch.processes()] == ["child"]


# --- other processes -----------------------------------------------------------------------------

SERVING = """
import asyncio, os, sys, threading
import handfast.watch as watch
from handfast._watch.connection import socket_folder
socket_folder._elsewhere = list  # other processes of this machine may be watched, too
"""


def test_a_forked_child_leaves_the_parents_socket_alone(
    tmp_path: Path, runtime_folder: Path
) -> None:
    source = (
        SERVING
        + """
with watch.serve() as served:
    asyncio.run(asyncio.sleep(0))
    child = os.fork()
    if child == 0:
        assert threading.active_count() == 1
        assert "create_task" in asyncio.BaseEventLoop.create_task.__qualname__
        assert asyncio.BaseEventLoop.create_task.__module__ == "asyncio.base_events"
        with watch.serve("child") as own:
            assert own.socket != served.socket
            print(sorted(each.program for each in watch.processes()), flush=True)
        served.stop()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print([each.program for each in watch.processes()], flush=True)
print(os.listdir(os.path.dirname(served.socket)), flush=True)
"""
    )
    with program(source, tmp_path) as running:
        assert line_from(running) == "['app.py', 'child']"
        assert line_from(running) == "['app.py']"
        assert line_from(running) == "[]"


def test_the_exit_of_the_interpreter_removes_the_socket(
    tmp_path: Path, runtime_folder: Path
) -> None:
    source = SERVING + 'watch.serve()\nprint("serving", flush=True)\nsys.exit(3)\n'
    with program(source, tmp_path) as running:
        assert line_from(running) == "serving"
        assert running.wait() == 3
        assert running.stderr is not None
        assert running.stderr.read() == ""
    assert sockets_in(runtime_folder) == []


def test_the_socket_of_a_killed_process_is_removed_by_the_next_look(
    tmp_path: Path, runtime_folder: Path
) -> None:
    source = SERVING + 'watch.serve()\nprint("serving", flush=True)\nsys.stdin.read()\n'
    with program(source, tmp_path) as running:
        assert line_from(running) == "serving"
        assert [each.pid for each in watch.processes()] == [running.pid]
    running.wait()
    assert len(sockets_in(runtime_folder)) == 1
    assert watch.processes() == []
    assert sockets_in(runtime_folder) == []
