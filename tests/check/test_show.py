"""The line of pytest that a finding ends with is run, as it stands, on a test of the wrong example: it
reports the same bug.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.catalogue import KINDS, kind
from holdfast.check import check
from holdfast.check.show import in_general
from holdfast.cli.app import app

SLOW_END = """
async def slow(*_):
    try:
        await asyncio.sleep(0 if _ == (1,) else 100)
    finally:
        await asyncio.sleep(1)
    return 1
"""
# For each code: what the detector calls it, and a test of the catalogue's wrong example.
TESTS = {
    "HF101": ("HF101", """
import gc
async def never(message):
    await asyncio.get_running_loop().create_future()
async def test_notify():
    notifier = Notifier(never)
    notifier.notify("hello")
    await asyncio.sleep(0)
    gc.collect()
    await notifier.close()
"""),
    "HF103": ("HF102", SLOW_END + """
async def test_first_answer():
    assert await first_answer(slow, [1, 2]) == 1
"""),
    "HF111": ("HF102", """
async def test_poller():
    poller = Poller(lambda: asyncio.sleep(1))
    await poller.close()
"""),
    "HF112": ("HF102", """
async def test_metrics():
    Metrics(lambda: asyncio.sleep(1))
"""),
    "HF113": ("HF102", """
async def listen(items):
    items.put_nowait("x")
    await asyncio.sleep(100)
async def test_first():
    with pytest.raises(ValueError):
        await first(listen, int)
"""),
    "HF131": ("HF131", """
JOBS = Jobs()
async def test_start():
    for _ in range(10):
        JOBS.start(lambda: asyncio.sleep(0))
    await JOBS.close()
"""),
    "HF303": ("HF102", SLOW_END + """
async def test_close():
    heartbeat = Heartbeat(slow)
    await asyncio.sleep(0)
    await heartbeat.close()
"""),
    "HF412": ("HF102", """
async def test_close():
    jobs = Jobs()
    async def job():
        try:
            await asyncio.sleep(100)
        finally:
            jobs.start(lambda: asyncio.sleep(100))
    jobs.start(job)
    await asyncio.sleep(0)
    await jobs.close()
"""),
    "HF501": ("HF501", """
import asyncio
async def test_worker():
    queue = asyncio.Queue()
    for job in range(100):
        queue.put_nowait(job)
    kept = asyncio.create_task(worker(queue, lambda job: asyncio.sleep(100), lambda *_: None))
    await asyncio.sleep(0)
"""),
    "HF512": ("HF102", """
async def test_book():
    await Ledger(lambda entry: asyncio.sleep(1)).book("x")
"""),
    "HF604": ("HF604", """
async def test_start():
    async with asyncio.TaskGroup() as group:
        jobs = Jobs(group)
        jobs.start(lambda: asyncio.sleep(1))
        jobs.forget_all()
"""),
    "HF731": ("HF731", """
KEPT = []
async def numbers():
    for number in range(5):
        yield number
def rows():
    KEPT.append(numbers())
    return KEPT[0]
async def test_find():
    assert await find(rows, 2) == 2
"""),
}  # fmt: skip
SWALLOWS_AND_ENDS = """
import asyncio


async def careful(work):
    try:
        await work()
    except BaseException:
        print("never mind")
"""
TEST_OF_IT = """
async def test_careful():
    await careful(lambda: asyncio.sleep(1))
"""

# Other plugins that happen to be installed take longer than the test.
ONLY = ("-p", "holdfast.pytest_plugin", "-p", "pytest_asyncio.plugin", "-p", "no:cacheprovider")


def shown(source: str, code: str) -> str:
    """The line of the first finding of this code."""
    Path("app.py").write_text(source)
    found = check(["app.py"], select=[code]).findings
    return found[0].show


def run(line: str, source: str, test: str) -> str:
    """What pytest says when the line is used as it stands: as a command, or above the test."""
    is_marker = line.startswith("@")
    marker = line if is_marker else "@pytest.mark.asyncio"
    marked = test.replace("async def test_", f"{marker}\nasync def test_")
    Path("test_app.py").write_text(f"import pytest\n{source}\n{marked}")
    command = ["pytest"] if is_marker else shlex.split(line)
    assert command[0] == "pytest"
    done = subprocess.run(
        [sys.executable, "-m", *command, *ONLY],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("code", TESTS)
def test_the_line_shows_the_bug_of_the_wrong_example(code: str) -> None:
    reported, test = TESTS[code]
    source = kind(code).wrong
    assert reported in run(shown(source, code), source, test)


def test_a_cancel_that_is_swallowed_for_good_is_shown_by_the_explorer() -> None:
    line = shown(SWALLOWS_AND_ENDS, "HF501")
    assert line == '@pytest.mark.explore(cancel="main")'
    assert "HF501" in run(line, SWALLOWS_AND_ENDS, TEST_OF_IT)


def test_every_line_that_there_is_was_run() -> None:
    assert {each.code for each in KINDS if in_general(each.code)} == set(TESTS)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def go(w):\n    asyncio.create_task(w())\n", "pytest -k go --holdfast"),
        ("def __go_on_(w):\n    asyncio.create_task(w())\n", "pytest -k go_on --holdfast"),
        (
            "def go(w):\n    def inner():\n        asyncio.create_task(w())\n    w(inner)\n",
            "pytest -k go --holdfast",
        ),
        (
            "class Bot:\n    def _go(self, w):\n        asyncio.create_task(w())\n",
            "pytest -k go --holdfast",
        ),
        (
            "class Bot:\n    def __init__(self, w):\n        asyncio.create_task(w())\n",
            "pytest -k Bot --holdfast",
        ),
        ("asyncio.create_task(w())\n", ""),
        ("def __getattr__(w):\n    asyncio.create_task(w())\n", ""),
    ],
)
def test_it_names_the_function_that_a_test_is_about(source: str, line: str) -> None:
    assert shown(f"import asyncio\n{source}", "HF101") == line


def test_a_code_that_takes_an_assertion_of_ones_own_has_no_line() -> None:
    assert shown(kind("HF301").wrong, "HF301") == ""


def test_explain_has_the_line_where_there_is_one() -> None:
    def explained(code: str) -> str:
        return CliRunner().invoke(app, ["check", "--explain", code]).stdout

    assert "on the command line:\n    pytest -k NAME --holdfast\n" in explained("task-dropped")
    assert "above the test:\n    @pytest.mark.explore\n" in explained("HF604")
    assert "pytest" not in explained("HF301")


def test_the_line_is_in_the_cache_too() -> None:
    Path("app.py").write_text(kind("HF101").wrong)
    reports = [check(["app.py"], select=["HF101"], cache="kept") for _ in range(2)]
    assert [each.findings[0].show for each in reports] == ["pytest -k notify --holdfast"] * 2
