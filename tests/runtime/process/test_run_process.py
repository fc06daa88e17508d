"""run_process, send_signal and the words for standard streams, with real children."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import signal
from typing import Any

import pytest

from handfast._runtime.errors import ProcessFailed, ProcessGone, ProcessStartError, ProcessTimeout
from handfast._runtime.process import child as child_module
from handfast._runtime.process.exit_status import ExitStatus
from handfast._runtime.process.process import Process
from handfast._runtime.process.run_process import ProcessResult, run_process
from tests.runtime.process.processes import (
    FAMILY,
    cancel_at,
    drive,
    line_of,
    on_each_loop,
    outcome,
    running,
)

MEGABYTE = 1 << 20


@on_each_loop
def test_it_returns_the_status_and_the_whole_output(kind: str) -> None:
    """A2: more than a pipe or a queue holds, on both outputs at once."""

    async def main() -> None:
        data = os.urandom(3 * MEGABYTE)
        result = await run_process("bash", "-c", "tee >(cat >&2); exit 3", input=data)
        assert result == ProcessResult(ExitStatus(3, None), data, data)
        assert (await run_process("cat")).stdout == b""
        # It does not read its input.
        assert (await run_process("true", input=data)).status.ok

    drive(kind, main)


@on_each_loop
def test_a_failure_and_a_time_out_have_the_output(kind: str) -> None:
    async def main() -> None:
        with pytest.raises(ProcessFailed, match=r"exit code 2> failed: no$") as failed:
            await run_process("bash", "-c", "echo out; echo no >&2; exit 2", check=True)
        assert failed.value.result == ProcessResult(ExitStatus(2, None), b"out\n", b"no\n")
        with pytest.raises(ProcessFailed, match="wrote nothing to stderr"):
            await run_process("false", check=True)
        with pytest.raises(ProcessTimeout, match=r"took more than 0\.3 s") as late:
            await run_process("bash", "-c", "echo out; sleep 1000", timeout=0.3)
        assert late.value.result.status == ExitStatus(None, signal.SIGTERM)
        assert running() == []
        for error in (failed.value, late.value):
            assert copy.deepcopy(error).result == error.result
            assert pickle.loads(pickle.dumps(error)).result == error.result
        with pytest.raises(ProcessStartError):
            await run_process("/no/such/program", timeout=10)

    drive(kind, main)


@on_each_loop
def test_output_of_a_descendant_that_outlives_the_program_is_in_the_result(kind: str) -> None:
    async def main() -> None:
        result = await run_process("bash", "-c", "(sleep 0.05; echo late) & echo now")
        assert result.stdout == b"now\nlate\n"
        result = await run_process("bash", "-c", "sleep 1000 & echo now", grace=0.02)
        assert result == ProcessResult(ExitStatus(0, None), b"now\n", b"")

    drive(kind, main)


@on_each_loop
def test_a_cancel_at_any_turn_leaves_nothing(kind: str) -> None:
    """S1.8."""

    async def main() -> None:
        for when in [*range(0, 20, 2), 50]:
            task = asyncio.create_task(run_process(*FAMILY))
            cancel_at(task, when, 1, 0)
            assert await outcome(task) == "cancelled"
            assert running() == []

    drive(kind, main)


def test_text_as_input_is_refused() -> None:
    text: Any = "text"
    with pytest.raises(TypeError, match="encode text first"):
        asyncio.run(run_process("cat", input=text))


@on_each_loop
def test_a_signal_goes_to_the_child_alone(kind: str) -> None:
    async def main() -> None:
        script = "trap 'echo usr1' USR1; echo up; while :; do sleep 0.01; done"
        async with Process("bash", "-c", script) as process:
            await line_of(process)
            process.send_signal(signal.SIGUSR1)
            assert await line_of(process) == b"usr1\n"
            process.send_signal(signal.SIGKILL)
            await process.wait()
            with pytest.raises(ProcessGone, match=r"cannot signal .*it has ended \(killed by"):
                process.send_signal(signal.SIGUSR1)

    drive(kind, main)


@on_each_loop
def test_streams_can_be_inherited_discarded_and_joined(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        script = "cat; echo out; echo err >&2"
        async with Process(
            "bash", "-c", script, stdin="null", stdout="inherit", stderr="null"
        ) as process:
            assert (await process.wait()).ok
            with pytest.raises(RuntimeError, match='create it with stdin="pipe"'):
                await process.send(b"x")
            await process.send_eof()
        async with Process("bash", "-c", script, stdin="null", stderr="stdout") as process:
            assert [line async for line in process.stdout.lines()] == [b"out\n", b"err\n"]

    drive(kind, main)
    assert capfd.readouterr().out == "out\n"


@pytest.mark.parametrize("call", ["wait", "send"])
def test_a_call_that_waits_for_a_child_without_a_reader_says_so(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2: back-pressure without a reader is no silent hang."""
    monkeypatch.setattr(child_module, "STALL_NOTICE", 0.01)

    async def main() -> None:
        async with Process("bash", "-c", "cat /dev/zero") as endless, Process("cat") as cat:
            blocked = endless.wait() if call == "wait" else cat.send(bytes(MEGABYTE))
            with (
                pytest.warns(RuntimeWarning, match=rf"^{call}\(\) of .*no one reads it"),
                pytest.raises(TimeoutError),
            ):
                async with asyncio.timeout(0.3):
                    await blocked
            # A reader of it gets every byte nevertheless.
            assert len(await anext(endless.stdout.chunks())) > 0

    drive("stock", main)
