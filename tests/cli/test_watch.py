"""The commands on a live process: `ps`, `top`, `tree`, `snapshot`, `diff`, `dump`, `attach`.

They read the agent of this very process, over its socket.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from handfast import watch
from handfast.watch import Snapshot
from tests.support.runtime_folder import runtime_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs Unix sockets")


__all__ = ["runtime_folder"]


@pytest.fixture(autouse=True)
def _folder(runtime_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def bot() -> Iterator[None]:
    with watch.serve("bot"):
        yield


def run(command: str, *arguments: str) -> int:
    status = import_module(f"handfast.cli.{command}").main(arguments)
    assert isinstance(status, int)
    return status


def with_tasks(command: Callable[[], object]) -> None:
    """Call a command, in a thread, while three tasks wait for an event."""

    async def main() -> None:
        event = asyncio.Event()
        tasks = [asyncio.create_task(event.wait(), name=f"waiter {n}") for n in range(3)]
        await asyncio.sleep(0)
        await asyncio.to_thread(command)
        event.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())


# The line that creates the three.
CREATED = with_tasks.__code__.co_firstlineno + 5


@pytest.mark.usefixtures("bot")
def test_ps_lists_the_watched_processes(capsys: pytest.CaptureFixture[str]) -> None:
    with_tasks(lambda: run("ps"))
    line = capsys.readouterr().out.splitlines()[1].split()
    assert line[:2] == [str(os.getpid()), "bot"]
    run("ps", "--json")
    (summary,) = json.loads(capsys.readouterr().out)
    assert summary["process"]["program"] == "bot"


@pytest.mark.usefixtures("bot")
@pytest.mark.parametrize("named", [[], ["bot"], [str(os.getpid())]])
def test_top_without_a_terminal_prints_one_table(
    named: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with_tasks(lambda: run("top", *named))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{os.getpid()}  bot   loop")
    (line,) = (line for line in lines if f"test_watch.py:{CREATED} " in line)
    assert " 3 " in line


@pytest.mark.usefixtures("bot")
def test_tree_shows_the_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    with_tasks(lambda: run("tree", "--wide"))
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "3 × " in line)
    assert f"created at test_watch.py:{CREATED}" in line


@pytest.mark.usefixtures("bot")
def test_snapshots_are_written_compared_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after, html = (tmp_path / name for name in ("a.json", "b.json", "page.html"))
    assert run("snapshot", "-o", str(before)) == 0
    with_tasks(lambda: run("snapshot", "bot", "-o", str(after)))
    assert Snapshot.from_json(after.read_text()).alive >= 4
    capsys.readouterr()
    run("diff", str(before), str(after))
    assert "+3         0         3" in capsys.readouterr().out
    run("diff", str(before), str(after), "--json")
    assert json.loads(capsys.readouterr().out)["places"]
    run("diff", str(after), "bot")
    assert "gone           -3" in capsys.readouterr().out
    run("dump", str(after), "--html", str(html))
    assert f"page: {html}\n" == capsys.readouterr().out
    assert "test_watch.py" in html.read_text()
    run("dump", str(after))
    assert json.loads(capsys.readouterr().out)["version"] == 1
    run("tree", str(after))
    assert "3 × " in capsys.readouterr().out


@pytest.mark.usefixtures("bot")
def test_a_snapshot_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    run("snapshot", "--tasks", "0")
    assert Snapshot.from_json(capsys.readouterr().out).tasks == ()


@pytest.mark.usefixtures("bot")
def test_attach_has_nothing_to_do_in_a_watched_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("attach", str(os.getpid())) == 0
    assert capsys.readouterr().out.endswith(f"is watched: handfast top {os.getpid()}\n")


# --- wrong use -----------------------------------------------------------------------------------


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        run(*words)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.parametrize("command", ["top", "tree", "snapshot", "dump"])
def test_without_a_watched_process_it_is_said_how_to_start_one(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(capsys, command)
    for way in ("HANDFAST_WATCH=1", "handfast.watch.serve()", "handfast attach PID"):
        assert way in message


def test_ps_says_so_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("ps") == 0
    assert "no process is watched: start a program with HANDFAST_WATCH=1" in capsys.readouterr().err


@pytest.mark.usefixtures("bot")
def test_a_wrong_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert f"there are bot ({os.getpid()})" in refused(capsys, "tree", "bat")
    assert "there is no process 99999999" in refused(capsys, "top", "99999999")


@pytest.mark.usefixtures("bot")
def test_two_watched_processes_have_to_be_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = "from handfast import watch; watch.serve('api'); print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        message = refused(capsys, "top")
        assert "2 processes are watched, so name one: " in message
        assert f"{os.getpid()} bot" in message
        assert f"{other.pid} api" in message
        other.communicate("\n")


def test_a_file_that_is_no_snapshot_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    assert "cannot be read: No such file" in refused(capsys, "tree", str(file))
    file.write_text("[]")
    assert "a.json: this is no snapshot" in refused(capsys, "dump", str(file))
    file.write_bytes(b"\xff{")
    assert "a.json: " in refused(capsys, "diff", str(file), str(file))


@pytest.mark.usefixtures("bot")
def test_a_file_that_cannot_be_written_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(capsys, "snapshot", "-o", str(tmp_path / "missing" / "a.json"))
    assert "cannot be written: No such file" in message


@pytest.mark.parametrize("number", ["-1", "20001", "many"])
def test_a_wrong_number_of_tasks_is_refused(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run("tree", "--tasks", number)
    assert ended.value.code == 2
    assert "--tasks" in capsys.readouterr().err


def test_attach_says_why_it_cannot(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no process 99999999" in refused(capsys, "attach", "99999999")


@pytest.mark.usefixtures("bot")
def test_a_missing_textual_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "textual"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.delitem(sys.modules, "handfast._watch.views.screen", raising=False)
    top = import_module("handfast.cli.top")
    monkeypatch.setattr(top, "_is_terminal", lambda: True)
    message = refused(capsys, "top", "bot")
    assert "needs textual: pip install 'handfast[watch]'" in message


# --- on a real terminal --------------------------------------------------------------------------

PROGRAM = """
import asyncio
from handfast import watch

async def wait():
    await asyncio.Event().wait()

async def main():
    tasks = [asyncio.create_task(wait()) for _ in range(30)]
    print("ready", flush=True)
    await asyncio.gather(*tasks)

watch.serve("bot")
asyncio.run(main())
"""


@pytest.fixture
def server() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            yield running
        finally:
            running.kill()


class Tmux:
    """A terminal of 80 x 24 in which a command runs; its exit status is printed at its end."""

    def __init__(self, folder: Path, command: str) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._do("new-session", "-d", "-s", "t", "-x", "80", "-y", "24", command)

    def _do(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True).stdout

    def keys(self, *keys: str) -> None:
        self._do("send-keys", "-t", "t", *keys)

    def screen(self, *options: str) -> str:
        return self._do("capture-pane", "-t", "t", "-p", *options)

    def until(self, *wanted: str) -> str:
        """Wait until all of it is on the screen; pytest ends a test that waits in vain."""
        while not all(each in (shown := self.screen()) for each in wanted):
            assert "status " not in shown, f"the command has ended: {shown}"
            time.sleep(0.1)
        return shown

    def close(self) -> None:
        self._do("kill-server")


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Tmux]]:
    if shutil.which("tmux") is None:
        pytest.skip("no tmux: the screen was not looked at in a terminal")
    opened: list[Tmux] = []

    def terminal(command: str) -> Tmux:
        opened.append(Tmux(tmp_path_factory.mktemp("tmux"), command))
        return opened[-1]

    yield terminal
    for each in opened:
        each.close()


def test_top_in_a_terminal_and_the_process_is_killed(
    server: subprocess.Popen[str], tmux: Callable[[str], Tmux]
) -> None:
    terminal = tmux(f"{sys.executable} -m handfast top {server.pid}; echo status $?; cat")
    shown = terminal.until("wait", "30", "[q]uit")
    assert max(map(len, shown.splitlines())) <= 80
    terminal.keys("t")
    terminal.until("30 × ")
    terminal.keys("w")
    terminal.until("30 of them", "waits for Event.wait")
    server.send_signal(signal.SIGKILL)
    terminal.until(f"process {server.pid} has ended")
    terminal.keys("C-c")
    terminal.until("status 0")


def test_top_without_colour_uses_none(
    server: subprocess.Popen[str], tmux: Callable[[str], Tmux]
) -> None:
    terminal = tmux(
        f"NO_COLOR=1 {sys.executable} -m handfast top {server.pid}; echo status $?; cat"
    )
    terminal.until("wait", "30", "[q]uit")
    codes = {
        code
        for part in terminal.screen("-e").split("\x1b[")[1:]
        for code in part.split("m")[0].split(";")
    }
    assert codes <= {"0", "1", "7", "39", "49", ""}
    terminal.keys("q")
    terminal.until("status 0")


def test_top_on_a_dumb_terminal_prints_one_table(server: subprocess.Popen[str]) -> None:
    main, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "handfast", "top", str(server.pid)],
        stdin=terminal,
        stdout=terminal,
        env={**os.environ, "TERM": "dumb"},
    )
    os.close(terminal)
    assert done.returncode == 0
    printed = os.read(main, 100_000).decode()
    os.close(main)
    assert "alive" in printed
    assert "\x1b" not in printed
