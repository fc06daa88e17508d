"""`run_process`: run a program to its end, and return its whole output."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from handfast._origin import Origin
from handfast._runtime.arguments import seconds, wrong_type
from handfast._runtime.errors import ProcessFailed, ProcessGone, ProcessTimeout
from handfast._runtime.process.command import Argument
from handfast._runtime.process.exit_status import ExitStatus
from handfast._runtime.process.process import Process


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a program ended, and everything that it wrote."""

    status: ExitStatus
    stdout: bytes
    stderr: bytes


async def run_process(
    *argv: Argument,
    input: bytes | bytearray | memoryview | None = None,  # noqa: A002 - as in subprocess.run
    env: Mapping[str, str] | None = None,
    cwd: Argument | None = None,
    timeout: float | None = None,
    grace: float = 5.0,
    check: bool = False,
) -> ProcessResult:
    r"""Run a program to its end; return its exit status and its whole output.

    >>> import asyncio, handfast
    >>> result = asyncio.run(handfast.run_process("tr", "a-z", "A-Z", input=b"hello\n"))
    >>> result.status.ok, result.stdout, result.stderr
    (True, b'HELLO\n', b'')

    Without `input` its standard input is empty. With `check`, an exit code other than 0 raises
    `ProcessFailed`. After `timeout` seconds the program is ended and `ProcessTimeout` is raised; both
    errors have the output in `result`. A cancel ends the program too, in the same way as
    `Process.close`: with SIGTERM for the whole process group, and after `grace` seconds with SIGKILL.

    A descendant that still has an output open when the program exits gets `grace` seconds to finish.
    The whole output is held in memory: use `Process` for one that may be huge.
    """
    if input is not None and not isinstance(input, bytes | bytearray | memoryview):
        raise wrong_type("run_process", "bytes as input", input, "encode text first")
    bound = asyncio.timeout(None if timeout is None else seconds("timeout", timeout))
    process = Process(
        *argv, env=env, cwd=cwd, grace=grace, stdin="null" if input is None else "pipe"
    )
    process._collect(Origin.here(1))
    status = ExitStatus.of(None)
    try:
        try:
            async with bound:
                await process.start()
                await _converse(process, input, grace)
        finally:
            status = await process.close()
    except TimeoutError:
        if not bound.expired():
            raise
    result = ProcessResult(status, process.stdout.take_all(), process.stderr.take_all())
    if bound.expired():
        late = ProcessTimeout(f"{process!r} took more than {timeout:g} s and was ended")
        late.result = result
        raise late
    if check and not status.ok:
        failed = ProcessFailed(f"{process!r} failed: {_last_words(result)}")
        failed.result = result
        raise failed
    return result


async def _converse(
    process: Process, data: bytes | bytearray | memoryview | None, grace: float
) -> None:
    if data is not None:
        # It may end, or close its input, without having read everything.
        with contextlib.suppress(ProcessGone):
            await process.send(data)
            await process.send_eof()
    await process.wait()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(grace):
            await process._drained()


def _last_words(result: ProcessResult) -> str:
    """The last line that it wrote to stderr, for the message of an error."""
    lines = result.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it wrote nothing to stderr"
