"""Report 4 with the SDK itself: claude-code-sdk 0.0.10, against a CLI of ours. Nothing leaves the machine.

On demand: skipped where that release is not installed. docs/examples/phases.md says how to run it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

import handfast
from examples.phases.fixed import PhaseOrchestrator
from examples.phases.sdk import Message, Sdk, command
from handfast import leaks

RELEASE = "0.0.10"
try:
    installed = version("claude-code-sdk")
except PackageNotFoundError:
    installed = "none"
if installed != RELEASE:
    pytest.skip(f"claude-code-sdk {RELEASE} is not installed", allow_module_level=True)

sdk: Any = pytest.importorskip("claude_code_sdk")
transports: Any = pytest.importorskip("claude_code_sdk._internal.transport.subprocess_cli")

ANSWER = {
    "type": "result", "subtype": "success", "result": "done", "is_error": False, "num_turns": 1,
    "session_id": "s", "cost_usd": 0.0, "total_cost": 0.0, "duration_ms": 1, "duration_api_ms": 1,
}  # fmt: skip
CLI = f"""#!{sys.executable} -IS
import json, os, sys, time
with open(sys.argv[0] + ".pid", "w") as file:
    file.write(str(os.getpid()))
print({json.dumps(ANSWER)!r}, flush=True)
time.sleep(30)
"""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A `claude` on the path: it gives a result, and would go on."""
    path = tmp_path / "claude"
    path.write_text(CLI)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    yield path
    with suppress(ProcessLookupError):
        os.kill(pid_of(path), signal.SIGKILL)


def pid_of(cli: Path) -> int:
    return int(Path(f"{cli}.pid").read_text())


def is_alive(cli: Path) -> bool:
    try:
        os.kill(pid_of(cli), 0)
    except ProcessLookupError:
        return False
    return True


PROGRAM = """
import asyncio
from contextlib import aclosing
import claude_code_sdk as sdk

async def leaves_it_to_the_collector():
    async for _ in sdk.query(prompt="news?"):
        break

async def closes_it():
    async with aclosing(sdk.query(prompt="news?")) as messages:
        async for _ in messages:
            break

async def host(phase):
    await phase()
    try:
        await asyncio.sleep(5)
    except asyncio.CancelledError as error:
        print(error)

asyncio.run(host({phase}))
"""


@pytest.mark.parametrize("phase", ["leaves_it_to_the_collector", "closes_it"])
def test_a_reader_that_stops_is_cancelled_by_the_sdk(phase: str, cli: Path) -> None:
    """The report's error, and an innocent host. `aclosing` alone does not help."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(phase=phase)], capture_output=True, text=True
    )
    assert ended.stdout.startswith("Cancelled via cancel scope")
    assert "Attempted to exit cancel scope in a different task" in ended.stderr


class AsPublished(Sdk):
    """The SDK's own stream."""

    async def query(self, prompt: str) -> AsyncGenerator[Message, None]:
        async with handfast.stream(sdk.query(prompt=prompt)) as messages:
            async for message in messages:
                yield {"type": "result", "result": message.result}


class Hosted(Sdk):
    """The stream inside that one, in which the task group is."""

    async def query(self, prompt: str) -> AsyncGenerator[Message, None]:
        transport = transports.SubprocessCLITransport(prompt, sdk.ClaudeCodeOptions())
        try:
            await transport.connect()
            async with handfast.stream(transport.receive_messages()) as messages:
                async for message in messages:
                    yield message
        finally:
            await handfast.shielded(transport.disconnect())


async def one_phase(kind: type[Sdk]) -> int:
    """How often the host was cancelled."""
    orchestrator = PhaseOrchestrator(kind(command("claude")), search=None)  # type: ignore[arg-type] # nobody searches
    message = await orchestrator.run_phase("news?")
    assert message["result"] == "done"
    assert (await orchestrator.close()).clean
    host = asyncio.current_task()
    assert host is not None
    return host.cancelling()


def test_with_an_owner_task_the_reader_is_not_cancelled(cli: Path) -> None:
    """S3.2. The rest is the SDK's own: it drops a stream inside its stream. The collector closes that
    one in a task of its own, which cuts the SDK's wait for the CLI, and nobody reads how it went."""

    async def program() -> list[str]:
        try:
            async with leaks.no_leaks(), asyncio.timeout(10):
                assert await one_phase(AsPublished) == 0
                while is_alive(cli):  # it has been terminated
                    await asyncio.sleep(0.01)
        except leaks.LeakError as error:
            return [leak.code for leak in error.leaks]
        return []

    logging.getLogger("asyncio").disabled = True
    try:
        assert asyncio.run(program()) == ["HF601"]
    finally:
        logging.getLogger("asyncio").disabled = False


def test_with_an_owner_task_for_the_inner_stream_nothing_leaks(cli: Path) -> None:
    """S3.1 to S3.3, for the stream that yields inside the task group."""

    async def program() -> None:
        async with leaks.no_leaks():
            assert await one_phase(Hosted) == 0
            assert not is_alive(cli)

    asyncio.run(program())
