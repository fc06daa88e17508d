"""Keywords: the `holdfast` command as a user starts it, in a process of its own; and its end.

A command that is to be killed has a pipe on which it tells that it is at work, and which all that it
starts inherits. So nobody waits for luck: a byte on it says "now", and its end says that the command
and everything that it has started are gone.
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
    "run_holdfast",
    "should_be_a_cache",
    "should_have_left_no_process",
]

_HERE = Path(__file__).parent
_HOLDFAST = str(Path(sysconfig.get_path("scripts"), "holdfast"))
_LONG = 60.0
# What a worker may take to see that whoever asked is gone: it ends what it is at.
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
    hears: int


def run_holdfast(*arguments: str, cwd: str = ".") -> Result:
    """Run `holdfast` to its end."""
    done = subprocess.run(
        [_HOLDFAST, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_LONG,
        check=False,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )
    return Result(done.returncode, done.stdout, done.stderr)


def at_work(*arguments: str, cwd: str, told: int, halt_at: str = "") -> Command:
    """Start `holdfast`, and come back when it has told so many times that it is at work."""
    hears, tells = os.pipe()
    os.set_blocking(tells, False)
    process = subprocess.Popen(
        [_HOLDFAST, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        pass_fds=(tells,),
        start_new_session=True,
        env={
            **os.environ,
            "HOLDFAST_HEARD_ON": str(tells),
            "HOLDFAST_HALT_AT": halt_at,
            "PYTHONPATH": os.pathsep.join(
                [str(_HERE / "halting"), os.environ.get("PYTHONPATH", "")]
            ),
        },
    )
    os.close(tells)
    command = Command(process, hears)
    for _ in range(int(told)):
        if not _hear(command, _LONG):
            ended = killed_by(command, "SIGKILL")
            _put_away(command)
            raise AssertionError(f"it ended too soon: {ended}")
    return command


def halted(*arguments: str, cwd: str) -> Command:
    """Start `holdfast`, and come back when it stands between writing a file and putting it in place."""
    return at_work(*arguments, cwd=cwd, told=1, halt_at="replace")


def _hear(command: Command, seconds: float) -> bytes:
    """Some bytes; none at the end of the pipe. It is an error if nothing comes."""
    ready, _, _ = select.select([command.hears], [], [], seconds)
    if not ready:
        raise AssertionError(f"nothing was heard for {seconds} s")
    return os.read(command.hears, 1)


def killed_by(command: Command, name: str) -> Result:
    """Send it a signal, to itself alone, and wait for its end."""
    process = command.process
    process.send_signal(signal.Signals[name])
    # Its output may be held open by whoever it has left behind: not by this we wait for its end.
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
        while _hear(command, _GONE):
            pass
    except AssertionError:
        raise AssertionError("some of its processes are still there") from None
    finally:
        _put_away(command)


def _put_away(command: Command) -> None:
    try:
        os.killpg(command.process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.close(command.hears)
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
    """What stands in a file; empty if there is none."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def should_be_a_cache(folder: str, whole: bool = True) -> None:
    """The cache is whole, or, if it need not be there, not there at all."""
    content = file_content(os.path.join(folder, ".holdfast_cache", "check.json"))
    if content or whole:
        assert set(json.loads(content)) == {"tool", "facts", "results"}


if sys.platform == "win32":
    raise ImportError("signals and process groups are of POSIX")
