"""`HANDFAST_WATCH=1 python app.py`: the watch of a program that does not know of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from handfast import watch
from handfast._watch.agent import agent, autostart
from tests.watch.watched_program import ROOT, line_from, program

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs Unix sockets"),
    pytest.mark.usefixtures("runtime_folder"),
]

# What the interpreter does with the .pth file of an installed package.
STARTUP = f"import site; site.addsitedir({str(ROOT / 'src')!r})\n"


def printed(source: str, environment: Mapping[str, str]) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", STARTUP + source],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr.strip()


def test_the_wheel_has_the_file_that_starts_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    forced = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert forced == {"src/handfast_watch.pth": "handfast_watch.pth"}


@pytest.mark.parametrize("value", [None, "", "0"])
def test_off_means_that_nothing_is_imported(value: str | None) -> None:
    source = "import sys, json; print(json.dumps([m for m in sys.modules if m in NAMES]))"
    names = 'NAMES = ["handfast", "handfast._watch", "asyncio", "threading", "socket"]\n'
    environment = {} if value is None else {"HANDFAST_WATCH": value}
    out, err = printed(names + source, environment)
    assert (json.loads(out), err) == ([], "")


def test_the_agent_starts_with_the_first_loop(tmp_path: Path) -> None:
    source = (
        STARTUP
        + """
import asyncio, threading
print(threading.active_count(), flush=True)
async def main():
    task = asyncio.create_task(asyncio.sleep(1000))
    print("ready", flush=True)
    await asyncio.to_thread(input)
asyncio.run(main())
"""
    )
    with program(source, tmp_path, {"HANDFAST_WATCH": "bot"}) as running:
        assert line_from(running) == "1"
        assert line_from(running) == "ready"
        with watch.connect("bot") as connection:
            taken = connection.snapshot()
        assert taken.process.pid == running.pid
        assert {place.function for place in taken.places} == {"<module>", "main"}
        assert all(task.place is not None for task in taken.tasks)


def test_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    before = asyncio.BaseEventLoop.__init__
    autostart.wait_for_loop()
    assert asyncio.BaseEventLoop.__init__ is before, "it is not requested"
    monkeypatch.setenv(autostart.VARIABLE, "here")
    autostart.wait_for_loop()
    autostart.wait_for_loop()
    assert watch.processes() == []
    asyncio.run(asyncio.sleep(0))
    assert [each.program for each in watch.processes()] == ["here"]
    agent.stop()
    assert asyncio.BaseEventLoop.__init__ is before


def test_an_error_in_this_process(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (runtime_folder / "handfast").touch()
    monkeypatch.setenv(autostart.VARIABLE, "1")
    autostart.wait_for_loop()
    asyncio.run(asyncio.sleep(0))
    assert agent.current() is None
    error = capsys.readouterr().err
    assert error.startswith("handfast watch: not started: ")
    assert "is no folder" in error


def test_without_a_name_it_is_that_of_the_script(tmp_path: Path) -> None:
    source = STARTUP + "import asyncio\nasyncio.run(asyncio.to_thread(lambda: print(1) or input()))"
    source = source.replace("print(1)", "print(1, flush=True)")
    with program(source, tmp_path, {"HANDFAST_WATCH": "1"}) as running:
        assert line_from(running) == "1"
        (process,) = watch.processes()
        assert process.program == "app.py"


def test_a_forked_worker_has_an_agent_of_its_own(tmp_path: Path, runtime_folder: Path) -> None:
    source = (
        STARTUP
        + """
import asyncio, os, sys
from handfast import watch
from handfast._watch.agent import agent, autostart
from handfast._watch.connection import socket_folder
socket_folder._elsewhere = list  # other processes of this machine may be watched, too
async def main():
    return [each.pid for each in watch.processes()]
def run():
    return asyncio.run(main())
assert run() == [os.getpid()]
worker = os.fork()
if worker == 0:
    assert [each.pid for each in watch.processes()] == [os.getppid()], "not before it has a loop"
    print(sorted(run()) == sorted([os.getpid(), os.getppid()]), flush=True)
    sys.exit(0)
assert os.waitpid(worker, 0)[1] == 0
print(run() == [os.getpid()], flush=True)
"""
    )
    with program(source, tmp_path, {"HANDFAST_WATCH": "1"}) as running:
        assert line_from(running) == "True"
        assert line_from(running) == "True"


@pytest.mark.parametrize("way", ["set_event_loop", "Runner"])
def test_a_loop_of_uvloop_starts_it_too(tmp_path: Path, way: str) -> None:
    pytest.importorskip("uvloop")
    source = (
        STARTUP
        + f"""
import asyncio, uvloop
from handfast import watch
from handfast._watch.agent import agent, autostart
from handfast._watch.connection import socket_folder
socket_folder._elsewhere = list  # other processes of this machine may be watched, too
async def main():
    print(watch.snapshot(0).loops[0].kind, len(watch.processes()), flush=True)
if {way!r} == "Runner":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
else:
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(main())
    loop.close()
"""
    )
    with program(source, tmp_path, {"HANDFAST_WATCH": "1"}) as running:
        assert line_from(running) == "uvloop.Loop 1"


def test_an_error_is_one_line_and_the_program_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "handfast"
    folder.mkdir()
    folder.chmod(0o755)
    out, err = printed(
        "import asyncio; asyncio.run(asyncio.sleep(0)); print('ended')",
        {"HANDFAST_WATCH": "1", "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert out == "ended"
    assert err.count("\n") == 0
    assert err.startswith(f"handfast watch: not started: {folder} has mode 0755")


def test_a_package_that_cannot_be_imported_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "handfast").mkdir()
    (tmp_path / "handfast" / "__init__.py").write_text("raise OSError('a broken disk')")
    out, err = printed("print('ended')", {"HANDFAST_WATCH": "1", "PYTHONPATH": str(tmp_path)})
    assert out == "ended"
    # Twice if the package is installed here with its own .pth file.
    assert set(err.splitlines()) == {"handfast watch: not started: OSError('a broken disk')"}
