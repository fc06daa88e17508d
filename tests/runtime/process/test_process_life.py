"""Starting, talking to and waiting for a child process; and each way to ask for it wrongly."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import hashlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from handfast._runtime.errors import (
    HandfastError,
    ProcessGone,
    ProcessStartError,
    UnsupportedPlatform,
    WrongLoop,
)
from handfast._runtime.process import group as process_group
from handfast._runtime.process.exit_status import ExitStatus
from handfast._runtime.process.process import Process
from tests.runtime.process.processes import (
    FAMILY,
    LOOPS,
    drive,
    line_of,
    on_each_loop,
    outcome,
    running,
    turns,
    until,
)

pytestmark = pytest.mark.usefixtures("small_heap")


@on_each_loop
def test_input_goes_in_and_output_comes_out(kind: str) -> None:
    async def main() -> None:
        async with Process("cat") as process:
            await process.send(b"one\n")
            await process.send(bytearray(b"two\n"))
            await process.send(memoryview(b"three\n"))
            await process.send(b"")
            await process.send_eof()
            await process.send_eof()
            lines = [line async for line in process.stdout.lines()]
            assert lines == [b"one\n", b"two\n", b"three\n"]
            assert await process.wait() == ExitStatus(0, None)
        assert process.stdout.eof
        assert process.stderr.eof

    drive(kind, main)


@on_each_loop
def test_the_child_leads_a_session_of_its_own_and_knows_its_origin(kind: str) -> None:
    async def main() -> None:
        process = Process("bash", "-c", "read")
        assert await process.start() is process
        assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid
        assert process.origin.function.endswith("main")
        assert process.origin.filename == __file__
        assert f"pid {process.pid}, running" in repr(process)
        assert "bash -c read" in repr(process)
        await process.close()
        assert "killed by SIGTERM" in repr(process)

    drive(kind, main)


@on_each_loop
def test_environment_and_directory_are_those_requested(kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        environment = {"GREETING": "hé", "PATH": os.environ["PATH"]}
        async with Process(
            "bash", b"-c", "echo $GREETING; pwd", env=environment, cwd=tmp_path
        ) as process:
            output = b"".join([chunk async for chunk in process.stdout.chunks()])
        assert output.decode() == f"hé\n{tmp_path}\n"

    drive(kind, main)


@on_each_loop
def test_exit_code_and_signal_are_distinguished(kind: str) -> None:
    async def main() -> None:
        async with Process("bash", "-c", "exit 3") as process:
            assert await process.wait() == ExitStatus(3, None)
        async with Process("bash", "-c", "kill -9 $$") as process:
            assert await process.wait() == ExitStatus(None, signal.SIGKILL)
        async with Process("bash", "-c", "kill -40 $$") as process:
            assert str(await process.wait()) == "killed by signal 40"

    drive(kind, main)


def test_exit_status_is_a_value_for_people() -> None:
    assert str(ExitStatus.of(0)) == "exit code 0"
    assert str(ExitStatus.of(-15)) == "killed by SIGTERM"
    assert str(ExitStatus.of(None)) == "never started"
    assert ExitStatus.of(0).ok
    assert not ExitStatus.of(1).ok
    assert not ExitStatus.of(-9).ok
    with pytest.raises(dataclasses.FrozenInstanceError):
        ExitStatus.of(0).code = 1  # type: ignore[misc]


@on_each_loop
def test_many_wait_and_cancelling_one_does_not_affect_others(kind: str) -> None:
    async def main() -> None:
        async with Process("bash", "-c", "read; exit 4") as process:
            waiters = [asyncio.create_task(process.wait()) for _ in range(3)]
            await turns(2)
            waiters[0].cancel()
            assert await outcome(waiters[0]) == "cancelled"
            await process.send(b"\n")
            assert await waiters[1] == await waiters[2] == await process.wait()
            assert (await process.wait()).code == 4

    drive(kind, main)


@on_each_loop
def test_a_large_input_waits_for_the_child_and_arrives_whole(kind: str) -> None:
    async def main() -> None:
        data = os.urandom(1 << 20)
        program = (
            "import hashlib, sys; i = sys.stdin.buffer; print('up', flush=True); "
            "i.readline(); print(hashlib.sha256(i.read()).hexdigest())"
        )
        async with Process(sys.executable, "-c", program) as process:
            assert await line_of(process) == b"up\n"
            await process.send(b"go\n")
            await process.send(data)
            await process.send_eof()
            assert await line_of(process) == hashlib.sha256(data).hexdigest().encode() + b"\n"

    drive(kind, main)


@on_each_loop
def test_messages_of_several_senders_do_not_mix(kind: str) -> None:
    async def main() -> None:
        size = 200_000
        async with Process("cat") as process:
            messages = [bytes([65 + n]) * size + b"\n" for n in range(4)]
            senders = [asyncio.create_task(process.send(message)) for message in messages]
            lines = process.stdout.lines(limit=size + 1)
            got = [await anext(lines) for _ in messages]
            await asyncio.gather(*senders)
            assert sorted(got) == messages

    drive(kind, main)


@on_each_loop
def test_a_sender_that_waits_for_a_full_input_can_be_cancelled(kind: str) -> None:
    async def main() -> None:
        async with Process("sleep", "1000") as process:
            stuck = asyncio.create_task(process.send(bytes(1 << 20)))
            await turns(20)
            second = asyncio.create_task(process.send(b"after"))
            await turns(2)
            stuck.cancel()
            assert await outcome(stuck) == "cancelled"
            closing = asyncio.create_task(process.close())
            # S1.6: close against send; waiters get an error, and nothing hangs.
            assert await outcome(second) in ("ProcessGone", "finished")
            await closing

    drive(kind, main)


@on_each_loop
def test_sending_to_a_child_that_has_ended_says_so(kind: str) -> None:
    async def main() -> None:
        async with Process("bash", "-c", "exit 1") as process:
            await process.wait()
            with pytest.raises(
                ProcessGone, match=r"bash -c .*created at .*it has ended \(exit code 1\)"
            ):
                await process.send(b"anybody there?")
            await process.send_eof()
        async with Process("cat") as process:
            await process.send_eof()
            with pytest.raises(ProcessGone, match=r"send_eof\(\) has ended its input"):
                await process.send(b"x")
        with pytest.raises(ProcessGone, match="it has ended"):
            await process.send(b"x")

    drive(kind, main)


@pytest.mark.parametrize("kind", [kind for kind in LOOPS if kind != "uvloop"])
def test_sending_to_a_child_that_has_closed_its_input_says_so(kind: str) -> None:
    """Not on uvloop: its children keep a second copy of each pipe, and so can close none."""

    async def main() -> None:
        async with Process("bash", "-c", "exec <&-; echo closed; sleep 1000") as process:
            assert await line_of(process) == b"closed\n"
            while await outcome(process.send(b"x")) == "finished":
                await turns(1)
            with pytest.raises(BrokenPipeError, match="closed its standard input"):
                await process.send(b"x")

    drive(kind, main)


@on_each_loop
def test_a_waiting_sender_gets_an_error_when_the_child_dies(kind: str) -> None:
    async def main() -> None:
        async with Process("bash", "-c", "echo up; read -n 1; exit 0") as process:
            await line_of(process)
            assert await outcome(process.send(b"x" * (1 << 20))) == "ProcessGone"

    drive(kind, main)


@on_each_loop
@pytest.mark.parametrize(
    ("program", "errno", "words"),
    [
        ("/no/such/program", 2, "cannot start '/no/such/program': No such file"),
        ("no-such-program", 2, "cannot start 'no-such-program': No such file"),
        ("/etc/passwd", 13, "cannot start '/etc/passwd': Permission denied"),
        ("/etc", 13, "cannot start '/etc': Permission denied"),
    ],
)
def test_a_program_that_cannot_start_is_named(
    kind: str, program: str, errno: int, words: str
) -> None:
    async def main() -> None:
        for _ in range(3):
            process = Process(program)
            with pytest.raises(ProcessStartError, match=words) as caught:
                await process.start()
            assert caught.value.errno == errno
            assert isinstance(caught.value, HandfastError)
            assert isinstance(caught.value, OSError)
            assert "created at" in str(caught.value)
            assert Path(__file__).name in str(caught.value)
            assert isinstance(caught.value.__cause__, OSError)
            # It has no output, and nothing to close.
            assert [line async for line in process.stdout.lines()] == []
            assert await process.close() == ExitStatus(None, None)
            with pytest.raises(RuntimeError, match="not running"):
                await process.wait()
        await turns(5)

    drive(kind, main)


@on_each_loop
def test_a_directory_that_is_missing_is_named(kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        missing = tmp_path / "gone"
        with pytest.raises(ProcessStartError, match=f"'true', there is no directory '{missing}'"):
            async with Process("true", cwd=missing):
                raise AssertionError("unreachable")
        await turns(5)

    drive(kind, main)


@pytest.mark.parametrize(
    ("argv", "options", "error", "words"),
    [
        ((), {}, ValueError, "needs a program"),
        ((["ls", "-l"],), {}, TypeError, "pass each argument by itself"),
        (("ls", 1), {}, TypeError, "argument 1 .* not 1"),
        (("ls", None), {}, TypeError, "argument 1 .* not None"),
        (("a\0b",), {}, ValueError, "argument 0 .* NUL"),
        (("ls",), {"grace": -1}, ValueError, "grace .* not -1"),
        (("ls",), {"grace": float("nan")}, ValueError, "grace"),
        (("ls",), {"grace": "5"}, TypeError, "grace"),
        (("ls",), {"keep": -1}, ValueError, "keep .* not -1"),
        (("ls",), {"keep": 1.5}, TypeError, "keep .* not 1.5"),
        (("ls",), {"env": {"A": 1}}, TypeError, "env must map strings"),
        (("ls",), {"env": {"A=B": "1"}}, ValueError, "env cannot contain 'A=B'"),
        (("ls",), {"env": {"A": "\0"}}, ValueError, "env cannot contain"),
        (("ls",), {"cwd": 3}, TypeError, "PathLike"),
    ],
)
def test_a_wrong_request_is_refused_at_the_call(
    argv: tuple[Any, ...], options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Process(*argv, **options)


@on_each_loop
def test_a_wrong_order_of_calls_is_refused(kind: str) -> None:
    async def main() -> None:
        process = Process("cat")
        with pytest.raises(RuntimeError, match="not running"):
            await process.send(b"early")
        with pytest.raises(RuntimeError, match="not running"):
            _ = process.pid
        with pytest.raises(RuntimeError, match="has not been started"):
            await anext(process.stdout.lines())
        async with process:
            with pytest.raises(RuntimeError, match="create another"):
                await process.start()
            with pytest.raises(TypeError, match=r"takes bytes, not .*; encode"):
                await process.send("text")  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="grace"):
                await process.close(grace=-1)
            assert "running" in repr(process)
        with pytest.raises(RuntimeError, match="create another"):
            await process.start()

        never = Process("cat")
        assert str(await never.close()) == "never started"
        with pytest.raises(RuntimeError, match="was closed before"):
            await never.start()
        assert "not started" in repr(never)

    drive(kind, main)


@on_each_loop
def test_another_loop_may_not_touch_it(kind: str) -> None:
    async def main() -> None:
        async with Process("cat") as process:

            async def stranger() -> None:
                for call in (process.wait(), process.send(b"x"), process.close()):
                    with pytest.raises(WrongLoop, match="another event loop"):
                        await call

            await asyncio.to_thread(asyncio.run, stranger())

    drive(kind, main)


@pytest.mark.parametrize("kind", LOOPS)
def test_it_works_on_a_loop_in_another_thread(kind: str) -> None:
    async def main() -> None:
        async with Process(*FAMILY) as process:
            assert await line_of(process) == b"ready\n"

    failures: list[BaseException] = []

    def body() -> None:
        try:
            drive(kind, main)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert failures == []


@on_each_loop
def test_one_that_is_dropped_without_close_is_named_and_killed(kind: str) -> None:
    async def main() -> None:
        process = await Process(*FAMILY).start()
        await line_of(process)
        pid, origin = process.pid, str(process.origin)
        with pytest.warns(ResourceWarning) as caught:
            del process
            gc.collect()
        message = str(caught[0].message)
        assert f"pid {pid}" in message
        assert origin in message
        assert "sleep 1000" in message
        assert "dropped without close" in message
        await until(lambda: running() == [])

        ended = await Process("true").start()
        await ended.wait()
        with pytest.warns(ResourceWarning, match="exit code 0"):
            del ended
            gc.collect()
        await turns(5)

    drive(kind, main)


def test_one_that_outlives_its_loop_is_killed_all_the_same() -> None:
    async def begin() -> Process:
        return await Process("sleep", "1000").start()

    loop = asyncio.new_event_loop()
    process = loop.run_until_complete(begin())
    pid = process.pid
    child = process._child
    assert child is not None
    with pytest.warns(ResourceWarning, match=f"pid {pid}"):
        # As if the loop were closed, without the noise that its transports then make.
        closed = asyncio.new_event_loop()
        closed.close()
        child.loop = closed
        del process
        gc.collect()
    loop.run_until_complete(child.exited.wait())
    assert child.returncode == -signal.SIGKILL
    child.abandon()
    loop.run_until_complete(turns(5))
    loop.close()


def test_a_system_without_process_groups_is_reported_at_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_group, "SUPPORTED", False)
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(
        UnsupportedPlatform, match=r"Process needs process groups, and win32 has none"
    ):
        Process("cmd")
    with pytest.raises(NotImplementedError):
        Process("cmd")
