"""Keywords: the `handfast` command as a user starts it, in a process of its own; and its end.

A command that is to be killed writes a byte to a pipe when it works, and all its processes inherit the
pipe. So a test needs no sleep: a byte says that the command is running, and EOF that all its processes
have ended.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import sysconfig
from asyncio import __file__ as _asyncio
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "at_work",
    "file_content",
    "files_of_asyncio",
    "halted",
    "killed_by",
    "run_examples",
    "run_handfast",
    "should_be_a_cache",
    "should_have_left_no_process",
]

_HERE = Path(__file__).parent
_CLONE = _HERE.parents[1]
_HANDFAST = str(Path(sysconfig.get_path("scripts"), "handfast"))
_LONG = 60.0
# Seconds for a worker to notice that its parent has ended: it finishes its current file.
_GONE = 20.0


@dataclass
class Result:
    """How a command ended."""

    status: int
    printed: str
    errors: str


@dataclass
class Command:
    """A command under way."""

    process: subprocess.Popen[str]
    reader: int


def run_handfast(*arguments: str, cwd: str = ".") -> Result:
    """Run `handfast` to its end."""
    return _run([_HANDFAST, *arguments], cwd)


def run_examples(*arguments: str) -> Result:
    """Run `python -m examples` in the clone, to its end."""
    return _run([sys.executable, "-m", "examples", *arguments], str(_CLONE))


def _run(command: list[str], cwd: str) -> Result:
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_LONG,
        check=False,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )
    return Result(done.returncode, done.stdout, done.stderr)


def at_work(*arguments: str, cwd: str, runs: int, halt_at: str = "") -> Command:
    """Start `handfast`, and return when it has written so many bytes to the pipe."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen(
        [_HANDFAST, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        pass_fds=(writer,),
        start_new_session=True,
        env={
            **os.environ,
            "HANDFAST_SIGNAL_FD": str(writer),
            "HANDFAST_HALT_AT": halt_at,
            "PYTHONPATH": os.pathsep.join(
                [str(_HERE / "halting"), os.environ.get("PYTHONPATH", "")]
            ),
        },
    )
    os.close(writer)
    command = Command(process, reader)
    for _ in range(int(runs)):
        if not _read_byte(command, _LONG):
            ended = killed_by(command, "SIGKILL")
            _clean_up(command)
            raise AssertionError(f"it ended too soon: {ended}")
    return command


def halted(*arguments: str, cwd: str) -> Command:
    """Start `handfast`, and return when it is between writing a file and moving it into place."""
    return at_work(*arguments, cwd=cwd, runs=1, halt_at="replace")


def _read_byte(command: Command, seconds: float) -> bytes:
    """Some bytes; none at the end of the pipe. It is an error if nothing comes."""
    ready, _, _ = select.select([command.reader], [], [], seconds)
    if not ready:
        raise AssertionError(f"nothing was written for {seconds} s")
    return os.read(command.reader, 1)


def killed_by(command: Command, name: str) -> Result:
    """Send it a signal, to itself alone, and wait for its end."""
    process = command.process
    process.send_signal(signal.Signals[name])
    # A leaked process may keep its output open, so EOF of that is not awaited here.
    process.wait(_LONG)
    return Result(process.returncode, _read(process.stdout), _read(process.stderr))


def _read(stream: object) -> str:
    """What is there, without waiting for the end."""
    number = stream.fileno()  # type: ignore[attr-defined]
    os.set_blocking(number, False)
    read = b""
    while True:
        try:
            part = os.read(number, 1 << 16)
        except BlockingIOError:
            break
        if not part:
            break
        read += part
    return read.decode(errors="replace")


def should_have_left_no_process(command: Command) -> None:
    """Everything that holds the other end of the pipe is gone, within a bound."""
    try:
        while _read_byte(command, _GONE):
            pass
    except AssertionError:
        raise AssertionError("some of its processes are still there") from None
    finally:
        _clean_up(command)


def _clean_up(command: Command) -> None:
    try:
        os.killpg(command.process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.close(command.reader)
    for stream in (command.process.stdout, command.process.stderr):
        assert stream is not None
        stream.close()


# --- files -------------------------------------------------------------------------------------


def files_of_asyncio(folder: str, copies: int = 1) -> None:
    """Fill a folder with code that takes a while to check: asyncio's own, so many times."""
    Path(folder, "pyproject.toml").write_text("", encoding="utf-8")  # its cache stays in there
    for path in sorted(Path(_asyncio).parent.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        for number in range(int(copies)):
            copy = Path(folder, f"copy{number}_{path.name}")
            copy.write_text(f"# copy {number}\n{source}", encoding="utf-8")


def file_content(path: str) -> str:
    """Return the text of a file; empty if there is none."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def should_be_a_cache(folder: str, whole: bool = True) -> None:
    """The cache is whole, or, if it need not be there, not there at all."""
    content = file_content(os.path.join(folder, ".handfast_cache", "check.json"))
    if content or whole:
        _signature, _, body = content.partition("\n")
        assert set(json.loads(body)) == {"tool", "facts", "results"}


if sys.platform == "win32":
    raise ImportError("signals and process groups are of POSIX")
