"""Programs that end, block or outgrow the explorer: each is refused or reported, and the run ends."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import math
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handfast._explore.loop.determinism import steady
from handfast._explore.search import workers
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast.explore import Uncontrolled, explore


def found(program: Callable[[], Any], **options: Any) -> Any:
    counterexample = explore(program, **options).counterexample
    assert counterexample is not None
    return counterexample


# --- the end of the process, and children --------------------------------------------------------


def test_os_exit_is_refused() -> None:
    async def program() -> None:
        os._exit(0)

    with pytest.raises(Uncontrolled, match=r"os\._exit is not controlled: it ends the process"):
        explore(program)


def test_a_thread_cannot_end_the_process_either() -> None:
    async def program() -> None:
        await asyncio.to_thread(os._exit, 0)

    with pytest.raises(Uncontrolled, match=r"os\._exit"):
        explore(program)


@pytest.mark.skipif(sys.platform == "win32", reason="fork and POSIX calls")
@pytest.mark.parametrize(
    ("start", "name"),
    [
        (lambda: os.fork(), r"os\.fork"),
        (lambda: os.system("true"), r"os\.system"),
        (lambda: subprocess.run(["true"]), r"subprocess\.Popen"),
        (
            lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
            r"_posixsubprocess\.fork_exec",
        ),
    ],
)
def test_a_real_child_is_refused(start: Callable[[], object], name: str) -> None:
    async def program() -> None:
        start()

    with pytest.raises(Uncontrolled, match=f"{name} is not controlled: it starts a real process"):
        explore(program)


def test_a_real_child_is_not_started_even_once(tmp_path: Path) -> None:
    async def program() -> None:
        try:
            subprocess.run([sys.executable, "-c", f"open({str(tmp_path / 'x')!r}, 'w')"])
        except BaseException:
            await asyncio.sleep(0)

    with pytest.raises(Uncontrolled, match="Popen"):
        explore(program)
    assert not (tmp_path / "x").exists()


def test_a_child_without_a_script_is_not_started_either(tmp_path: Path) -> None:
    async def program() -> None:
        with contextlib.suppress(BaseException):
            await asyncio.create_subprocess_exec("touch", str(tmp_path / "exec"))
        with contextlib.suppress(BaseException):
            await asyncio.create_subprocess_shell(f"touch {tmp_path / 'shell'}")

    with pytest.raises(Uncontrolled, match=r"'touch' is not controlled: this run has no script"):
        explore(program)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("how", ["with", "shutdown", "dropped"])
def test_a_process_pool_is_refused_and_the_search_ends(how: str) -> None:
    async def program() -> None:
        pool = concurrent.futures.ProcessPoolExecutor(1)
        with pool if how == "with" else contextlib.nullcontext():
            try:
                await asyncio.get_running_loop().run_in_executor(pool, int)
            finally:
                if how == "shutdown":
                    pool.shutdown()

    with pytest.raises(Uncontrolled, match=r"ProcessPoolExecutor|a real process"):
        explore(program)
    assert not multiprocessing.active_children()


def test_a_child_can_be_started_outside_a_run() -> None:
    async def program() -> None:
        await asyncio.sleep(0)

    explore(program)
    assert subprocess.run([sys.executable, "-c", ""]).returncode == 0


# --- time that does not pass, or never ends --------------------------------------------------------


def test_an_infinite_sleep_is_a_deadlock() -> None:
    async def program() -> None:
        await asyncio.sleep(math.inf)

    counterexample = found(program)
    assert counterexample.code == "HF431"
    assert "waits for sleep" in counterexample.verdict.where[0]


def test_sleeping_forever_with_anyio_is_a_deadlock_and_can_be_cancelled() -> None:
    anyio = pytest.importorskip("anyio")

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            await asyncio.sleep(1)
            group.cancel_scope.cancel()

    assert found(anyio.sleep_forever).code == "HF431"
    assert explore(cancelled).counterexample is None


def test_an_infinite_sleep_can_be_cancelled_and_is_no_timer_that_is_left() -> None:
    async def program() -> None:
        task = asyncio.create_task(asyncio.sleep(math.inf))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(math.inf), asyncio.timeout(1):
                await asyncio.Event().wait()

    assert explore(program).counterexample is None


def _code_within(steps: int, program: Callable[[], Any]) -> str:
    """The code of the plain run. The usual limit of steps takes seconds."""
    with steady():
        record = run(program, Plan(), Settings(stall=0.0, step_limit=steps))
    return "" if record.verdict is None else record.verdict.code


def test_polling_with_time_sleep_on_the_loop_is_a_livelock() -> None:
    async def program() -> None:
        while True:
            time.sleep(0.001)

    assert _code_within(1_000, program) == "HF432"


def test_polling_in_a_thread_is_a_livelock() -> None:
    async def program() -> None:
        done = threading.Event()

        def poll() -> None:
            while not done.is_set():
                time.sleep(0.001)

        await asyncio.to_thread(poll)

    assert _code_within(1_000, program) == "HF432"


def test_a_loop_without_an_await_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_LEAST_LIMIT", 0.2)

    async def program() -> None:
        while True:
            pass

    with pytest.raises(Uncontrolled, match=r"a run .* more than 0\.2 s of real time"):
        explore(program, seconds=0.1)


def test_a_loop_that_catches_everything_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_LEAST_LIMIT", 0.2)
    ends = _real_time() + 1.0

    async def program() -> None:
        while threading.active_count() and _real_time() < ends:
            try:
                while _real_time() < ends:
                    pass
            except BaseException:
                pass

    with pytest.raises(Uncontrolled, match="of real time"):
        explore(program, seconds=0.1)


def _real_time() -> float:
    """A clock that the explorer leaves alone."""
    return os.times().elapsed


# --- text ------------------------------------------------------------------------------------------


def test_many_tasks_are_counted_and_not_all_listed() -> None:
    kept: list[asyncio.Task[bool]] = []

    async def program() -> None:
        kept[:] = [asyncio.create_task(asyncio.Event().wait()) for _ in range(20_000)]
        await asyncio.sleep(0)

    verdict = found(program, schedules=1).verdict
    assert verdict.message.startswith("20000 tasks are still pending")
    assert len(verdict.where) == 101
    assert verdict.where[-1] == "and 19,900 more"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (Unprintable(), "Unprintable: (its message cannot be shown: __str__ raises ValueError)"),
        (ValueError("x\udc80y"), r"ValueError: x\udc80y"),
        (ValueError("x" * 1_000_000), "(1,000,000 characters)"),
    ],
)
def test_any_message_can_be_shown(error: Exception, shown: str) -> None:
    async def program() -> None:
        await asyncio.sleep(0)
        raise error

    counterexample = found(program)
    assert shown in counterexample.verdict.message
    for text in (counterexample.report(), counterexample.to_html()):
        assert len(text.encode("utf-8")) < 200_000


def test_an_invariant_that_fails_with_such_an_error_is_reported() -> None:
    async def program() -> None:
        await asyncio.sleep(0)

    def invariant() -> None:
        raise Unprintable

    assert found(program, invariant=invariant).code == "HF442"


def test_names_of_tasks_and_functions_can_be_shown() -> None:
    async def task() -> None:
        async def work() -> None:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                await asyncio.sleep(0)

        await asyncio.wait([asyncio.create_task(work(), name="task \udc82")])

    async def function() -> None:
        def callback() -> None:
            raise ValueError("\udc80")

        callback.__qualname__ = "callback \udc81"
        asyncio.get_running_loop().call_soon(callback)
        await asyncio.sleep(1)

    for program, code, shown in [
        (task, "HF501", r"task \udc82 was cancelled by the explorer"),
        (function, "HF604", r"callback \udc81"),
    ]:
        counterexample = found(program, cancel=True)
        assert counterexample.code == code
        assert shown in str(counterexample)
        for text in (counterexample.report(width=300), counterexample.to_html()):
            text.encode("utf-8")


def test_a_file_with_any_name_can_be_shown() -> None:
    source = "import asyncio\nasync def program():\n    await asyncio.sleep(0)\n    raise OSError\n"
    names: dict[str, Any] = {}
    exec(compile(source, "/somewhere/\udcff.py", "exec"), names)
    counterexample = found(names["program"])
    assert counterexample.verdict.where == (r"/somewhere/\udcff.py:4 in program",)
    for text in (counterexample.report(), counterexample.to_html()):
        text.encode("utf-8")
