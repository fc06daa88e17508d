"""`handfast audit`: options, outputs, exit statuses, the demo, and Ctrl-C."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import sys
import uuid
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from handfast._audit.demo import write_demo
from handfast.cli.app import app
from tests.cli.real_command import alive, start


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """An inner pytest starts in a third of the time without them."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "audit.md"
README = GUIDE.parents[2] / "README.md"
APP = """
import asyncio

async def work():
    await asyncio.sleep(1)

async def start():
    asyncio.create_task(work())
"""


def audit(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments])


def test_wrong_use_is_one_line_and_status_2(tmp_path: Path) -> None:
    result = audit(str(tmp_path / "missing"))
    assert result.exit_code == 2
    assert result.stderr.endswith("missing is not a folder: name the folder of a project\n")
    result = audit(str(tmp_path), "--python", str(tmp_path / "python"))
    assert result.exit_code == 2
    assert "python is no Python: it does not run: No such file" in result.stderr
    result = audit(str(tmp_path), "--python", "false")
    assert result.stderr.endswith("false is no Python: it does not run: it ended with status 1\n")
    result = audit(str(tmp_path), "--python", "echo")
    assert "it does not run: its answer was not understood: Expecting" in result.stderr
    result = audit(str(tmp_path), "--minutes", "inf")
    assert result.exit_code == 2
    # Before the minutes that the audit takes.
    result = audit(str(tmp_path), "--json", str(tmp_path / "no" / "such" / "file"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith("file cannot be written: its folder does not exist\n")


def test_a_dry_run_shows_the_plan_and_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("x = (")
    result = audit(str(tmp_path), "--dry-run", "--minutes", "2")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "will run   check the sources; at most 2 minutes"


def test_nothing_found_is_status_0(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import asyncio\nasync def main(): ...\n")
    result = audit(str(tmp_path))
    assert result.exit_code == 0
    assert "Nothing found in " in result.stdout
    assert "  tests: not run: no tests were found\n" in result.stdout


def test_a_file_that_cannot_be_written_is_one_line_after_the_report(tmp_path: Path) -> None:
    result = audit(str(tmp_path), "--json", str(tmp_path))
    assert result.exit_code == 2
    assert "Nothing found in " in result.stdout
    assert result.stderr.endswith(" cannot be written: Is a directory\n")


def test_each_tool_finds_a_bug_of_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    files = {name: tmp_path / f"out.{name}" for name in ("json", "sarif", "html")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    result = audit("--demo", "--minutes", "5", *options)
    assert result.exit_code == 1, result.output
    assert len(result.stdout.splitlines()) <= 60
    assert "found by: the Python that runs handfast)" in result.stdout
    shown = GUIDE.read_text().partition('title="handfast audit --demo"\n')[2].partition("```")[0]
    shown += README.read_text().partition("$ handfast audit --demo\n")[2].partition("```")[0]
    printed = result.stdout.splitlines()
    assert [line for line in shown.splitlines() if line not in printed and "..." not in line] == []
    data = json.loads(files["json"].read_text())
    found = {(tool, each["code"]) for each in data["findings"] for tool in each["tools"]}
    # A bug of httpcore, in a request of httpx.
    assert importlib.util.find_spec("httpx") is not None
    assert found == {
        ("explore with cancel", "HF441"),
        ("check", "HF201"),
        ("leaks", "HF701"),
        ("check", "HF701"),
        ("explore", "HF441"),
        ("explore with cancel", "HF531"),
    }
    places = {each["path"] for each in data["findings"]}
    assert places == {"service.py", "test_service.py", "test_http.py"}
    (run,) = json.loads(files["sarif"].read_text())["runs"]
    assert len(run["results"]) == 5
    assert files["html"].read_text().count("<section") == 5
    # The folder stays, with the bugs where the report says.
    (demo,) = tmp_path.glob("handfast-demo-*")
    lines = (demo / "service.py").read_text().splitlines()
    assert sum("# bug" in line for line in lines) == 4


def test_without_httpx_the_demo_is_the_service_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handfast._audit.demo.find_spec", {"httpcore": True}.get)
    write_demo(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["pytest.ini", "service.py", "test_service.py"]
    assert "http" not in "".join(each.read_text() for each in tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for orphans in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_prints_the_report_so_far_and_leaves_no_process(
    tmp_path: Path, number: signal.Signals
) -> None:
    root = tmp_path / "app"
    root.mkdir()
    fifo = tmp_path / "running"
    os.mkfifo(fifo)
    (root / "pytest.ini").write_text("[pytest]\n")  # not that of a folder above
    (root / "app.py").write_text(APP)
    (root / "test_app.py").write_text(
        "import subprocess\n"
        "def test_passes(): pass\n"
        "def test_waits():\n"
        "    child = subprocess.Popen(['sleep', '600'])\n"
        f"    open({str(fifo)!r}, 'w').write('x')\n"
        "    child.wait()\n"
    )
    running = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    mark = uuid.uuid4().hex
    arguments = ["--python", sys.executable, "--minutes", "30"]
    process = start("audit", root, str(root), *arguments, HANDFAST_TEST_MARK=mark)
    try:
        assert select.select([running], [], [], 100)[0]  # the test runs
        process.send_signal(number)
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(running)
    assert process.returncode == 130, errors
    assert " 1. app.py:8: HF101 task-dropped\n" in printed
    assert "Interrupted: this is the report so far.\n" in printed
    assert "  suite: interrupted after 1 of 2 tests\n" in printed
    assert alive(mark) == []
