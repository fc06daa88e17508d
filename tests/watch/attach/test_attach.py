"""Attaching to a process that was not prepared: for real, with this Python's way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import handfast
from handfast._watch.attach import attach, gdb
from handfast._watch.attach.attach import _is_watched, _require_hope
from handfast._watch.attach.injected import script
from handfast._watch.attach.target import Target, examine, why_not_permitted
from handfast._watch.connection.client import connect
from handfast.watch import WatchError

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.usefixtures("runtime_folder"),
]
NEEDS_GDB = sys.version_info < (3, 14)

IDLE = """
import asyncio, sys
async def sleep():
    await asyncio.sleep(1e6)
async def main():
    tasks = [asyncio.create_task(sleep()) for _ in range(3)]
    print("ready", flush=True)
    for line in await asyncio.to_thread(sys.stdin.readline):
        break
    tasks += [asyncio.create_task(sleep()) for _ in range(2)]
    print("more", flush=True)
    await asyncio.sleep(1e6)
asyncio.run(main())
"""


@contextmanager
def unprepared(source: str, stderr: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """A program that cannot import handfast: no site-packages, no environment."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            yield running
        finally:
            running.kill()


@pytest.fixture(scope="module")
def possible() -> None:
    """Skips where the system does not let a process trace another one."""
    if NEEDS_GDB and shutil.which("gdb") is None:
        pytest.skip("no gdb")
    with unprepared("import time; print('ready', flush=True); time.sleep(1e6)") as running:
        import ctypes

        ptrace = ctypes.CDLL(None).ptrace
        if ptrace(16, running.pid, None, None) != 0:
            pytest.skip("ptrace is not permitted here")
        os.waitpid(running.pid, 0x40000000)
        ptrace(17, running.pid, None, None)


@pytest.mark.usefixtures("possible")
def test_an_idle_process_without_handfast_is_watched() -> None:
    with unprepared(IDLE) as running:
        attach(running.pid, gdb=True, timeout=100)
        attach(running.pid)  # it is watched: nothing to do
        with connect(running.pid) as client:
            before = client.snapshot()
            assert before.alive == 4
            assert {each.place for each in before.tasks} == {None}
            assert {each.waits_for for each in before.tasks} >= {"sleep"}
            assert running.stdin is not None
            assert running.stdout is not None
            running.stdin.write("go\n")
            running.stdin.flush()
            assert running.stdout.readline() == "more\n"
            assert [each.alive for each in client.summary().places if each.alive] == [2]


@pytest.mark.usefixtures("possible")
def test_a_start_that_fails_is_reported_and_the_program_goes_on() -> None:
    broken = "import sys; sys.modules['handfast.watch'] = None\n" + IDLE
    with unprepared(broken) as running:
        with pytest.raises(WatchError, match=r"cannot be started in process .*handfast\.watch"):
            attach(running.pid, gdb=True, timeout=100)
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write("go\n")
        running.stdin.flush()
        assert running.stdout.readline() == "more\n"


@pytest.mark.usefixtures("possible")
@pytest.mark.skipif(NEEDS_GDB, reason="sys.remote_exec is new in 3.14")
def test_a_process_that_sleeps_too_long_is_watched_once_it_wakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys.modules[attach.__module__], "wake", lambda _: None)
    asleep = "import asyncio, sys\nprint('ready', flush=True)\nsys.stdin.readline()\n"
    with unprepared(asleep + "asyncio.run(asyncio.sleep(1e6))", stderr=subprocess.PIPE) as running:
        while "State:\tS" not in Path(f"/proc/{running.pid}/status").read_text():
            assert running.poll() is None
        with pytest.raises(WatchError, match="Its watch starts as soon as it does"):
            attach(running.pid, timeout=0.1)
        assert len(os.listdir(tmp_path)) == 1
        assert running.stdin is not None
        running.stdin.write("go\n")
        running.stdin.flush()
        while not _is_watched(running.pid) or os.listdir(tmp_path):  # the script removes itself
            assert running.poll() is None
        running.kill()
        assert running.communicate()[1] == ""


@pytest.mark.usefixtures("possible")
@pytest.mark.skipif(not NEEDS_GDB, reason="gdb is for older versions")
def test_gdb_finds_a_process_that_only_sleeps() -> None:
    sleeps = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.1)"
    with unprepared(sleeps) as running:
        attach(running.pid, gdb=True, timeout=100)


@pytest.mark.usefixtures("possible")
def test_a_process_with_another_runtime_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.environ["XDG_RUNTIME_DIR"]
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as other:
        monkeypatch.setenv("XDG_RUNTIME_DIR", other)
        with unprepared(IDLE) as running:
            monkeypatch.setenv("XDG_RUNTIME_DIR", here)
            attach(running.pid, gdb=True, timeout=100)
            with connect(running.pid) as client:
                assert client.process.pid == running.pid


@pytest.mark.usefixtures("possible")
@pytest.mark.skipif(not NEEDS_GDB, reason="gdb is for older versions")
@pytest.mark.parametrize(
    "endless",
    [
        # It looks for signals, but never gives up the GIL.
        'import re\nprint("ready", flush=True)\nre.match("(a|b|ab)*c", "ab" * 40)',
        # It never gets back from C, so gdb waits until it has to end.
        'import ctypes\nprint("ready", flush=True)\nctypes.CDLL(None).pause()',
    ],
)
def test_gdb_leaves_a_process_that_never_runs_python_code_as_it_was(
    endless: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        tempfile, "tempdir", str(tmp_path)
    )  # the script waits there for the process
    with unprepared(endless) as running:
        with pytest.raises(WatchError, match="has not run Python code"):
            attach(running.pid, gdb=True, timeout=4)
        assert running.poll() is None
        # Neither a tracer nor a stop is left.
        status = Path(f"/proc/{running.pid}/status").read_text()
        assert "TracerPid:\t0" in status
        assert "State:\tR" in status or "State:\tS" in status


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ("ptrace: Operation not permitted.", "the system does not permit"),
        ("a\nptrace: No such process.", r"could not attach to process 7: ptrace: No such"),
        ("", "it said nothing"),
    ],
)
def test_what_gdb_says_is_reported(
    printed: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gdb, "_run", lambda *_: printed)
    with pytest.raises(WatchError, match=says):
        gdb.inject(Target(7, (3, 13)), tmp_path / "start.py", 1)


@pytest.mark.skipif(not NEEDS_GDB, reason="gdb is for older versions")
def test_gdb_is_used_only_on_request() -> None:
    with unprepared(IDLE) as running, pytest.raises(WatchError, match="handfast attach --gdb"):
        attach(running.pid)


def test_a_missing_gdb_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(WatchError, match="needs gdb"):
        gdb.require(Target(1, (3, 11)), permitted=True)


# --- refused -------------------------------------------------------------------------------------


def test_a_process_that_does_not_exist_is_refused() -> None:
    with pytest.raises(WatchError, match="there is no process 99999999"):
        attach(99999999)


def test_a_process_that_is_no_python_is_refused() -> None:
    with subprocess.Popen(["sleep", "1000"]) as running:
        try:
            with pytest.raises(WatchError, match="runs no Python"):
                attach(running.pid)
        finally:
            running.kill()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs two users")
def test_a_process_of_another_user_is_refused() -> None:
    with subprocess.Popen(["sleep", "1000"], user=65534) as running:
        try:
            with pytest.raises(WatchError, match=r"belongs to user 65534, .*`sudo -u '#65534'"):
                attach(running.pid)
        finally:
            running.kill()


def test_another_container_is_refused() -> None:
    command = ["unshare", "--user", "--pid", "--fork", "--kill-child", sys.executable, "-c"]
    if os.name == "posix" and os.geteuid() == 0:
        command.remove("--user")
    source = "import time; print('ready', flush=True); time.sleep(1e6)"
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    with subprocess.Popen([*command, source], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            if running.stdout.readline() != "ready\n":
                pytest.skip("namespaces are not permitted here")
            children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text()
            with pytest.raises(WatchError, match=r"another container .its pid namespace"):
                attach(int(children.split()[0]))
        finally:
            running.kill()


def test_another_version_of_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with unprepared(IDLE) as running:
        monkeypatch.setattr(sys, "version_info", (3, 9, 0))
        with pytest.raises(WatchError, match=r"this is Python 3\.9: run `python3\.1\d -m handfast"):
            examine(running.pid)


@pytest.mark.parametrize(
    ("scope", "says"), [("3", "restart of the system"), ("1", "set that to 0"), ("0", "SYS_PTRACE")]
)
def test_why_tracing_is_not_permitted(
    scope: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_text

    def read_text(path: Path, *arguments: Any, **named: Any) -> str:
        return f"{scope}\n" if path.name == "ptrace_scope" else read(path, *arguments, **named)

    monkeypatch.setattr(Path, "read_text", read_text)
    assert says in why_not_permitted(7)


def test_waiting_ends_with_the_process(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    with pytest.raises(WatchError, match="has ended"):
        _require_hope(ended.pid, tmp_path / "error")


@pytest.mark.parametrize("known", [True, False], ids=["folder known", "folder not known"])
def test_the_script_leaves_names_and_paths_of_the_program_alone(
    known: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(Path(handfast.__file__).parents[1])
    others = [each for each in sys.path if each != folder]
    monkeypatch.setattr(sys, "path", [folder, *others] if known else others)
    path = list(sys.path)
    names: dict[str, Any] = {}
    text = script(tmp_path, tmp_path / 'it\'s\nan "error"')
    exec(compile(text.replace("handfast.watch.serve()", "pass"), "s", "exec"), names)
    for thread in threading.enumerate():
        if thread.name == "handfast-attach":
            thread.join()
    assert sys.path == path
    assert signal.getsignal(signal.SIGWINCH) == signal.SIG_DFL
