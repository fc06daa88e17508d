"""The plugin that runs in the project's interpreter; here in this process."""

from __future__ import annotations

import asyncio
import json
from asyncio import events
from collections.abc import Callable
from typing import Any

import pytest

# Imported before any inner run: pytester forgets what was imported inside one.
import handfast._audit.suite.plugin
import handfast.pytest_plugin.explore.suite.explorer
import handfast.pytest_plugin.explore.suite.summary
import handfast.pytest_plugin.leaks.plugin  # noqa: F401
from tests.pytest_plugin.inner_pytest import INI, LEAN

pytest_plugins = ["pytester"]

SUITE = """
import asyncio
import pytest

kept = []

async def main():
    kept.append(asyncio.get_running_loop().create_task(asyncio.sleep(60)))
    kept.append(asyncio.create_task(work()))
    await kept[1]

async def work():
    pass

def test_leaks():
    asyncio.run(main())

def test_fails():
    assert 1 == 2

@pytest.mark.xfail
def test_is_expected_to_fail():
    raise OSError

def test_order():
    seen = []
    async def one(number):
        seen.append(await asyncio.to_thread(int, number))
    async def both():
        await asyncio.gather(one(1), one(2))
    asyncio.run(both())
    assert seen == [1, 2] or not kept
"""

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the suite with a plan; the lines that were written."""
    pytester.makeini(INI)
    pytester.makepyfile(test_it=SUITE)
    output = pytester.path / "events.jsonl"

    def run(*options: str, seconds: float = 60.0, **wanted: Any) -> list[dict[str, Any]]:
        plan = {"skip": [], "only": None, "seconds": seconds, "output": str(output), **wanted}
        (pytester.path / "plan.json").write_text(json.dumps(plan))
        monkeypatch.setenv("HANDFAST_AUDIT", str(pytester.path / "plan.json"))
        before = asyncio.BaseEventLoop.create_task, events._set_running_loop
        arguments = ["-p", "handfast._audit.suite.plugin", "--continue-on-collection-errors"]
        pytester.runpytest_inprocess(*LEAN, *arguments, *options)
        assert (asyncio.BaseEventLoop.create_task, events._set_running_loop) == before
        text = output.read_text() if output.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    return run


def of(lines: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["event"] == event]


def test_each_test_is_written_with_its_result_and_its_leaks(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(test_broken="import no_such_module\n")
    lines = run("--handfast=report", skip=["test_it.py::test_order"])
    assert of(lines, "collected") == [{"event": "collected", "tests": 3, "needs_folder": False}]
    (broken,) = of(lines, "broken")
    assert broken["where"] == "test_broken.py"
    assert broken["why"] == "ModuleNotFoundError: No module named 'no_such_module'"
    leaking, failing, _ = of(lines, "ended")
    # Its own and that of `asyncio.run`; `sleep` is asyncio's.
    assert (leaking["test"], leaking["is_async"]) == ("test_it.py::test_leaks", True)
    assert leaking["tasks"] == 2
    assert (failing["is_async"], failing["tasks"]) == (False, 0)
    reports = of(lines, "report")
    assert [each["leaks"][0]["code"] for each in reports if each["leaks"]] == ["HF102"]
    calls = [(each["outcome"], each["why"]) for each in reports if each["when"] == "call"]
    assert calls == [("passed", ""), ("failed", "assert 1 == 2"), ("xfailed", "")]
    assert of(lines, "finished")


def test_the_run_ends_when_the_time_is_over(run: Run) -> None:
    lines = run(seconds=-1.0)
    assert len(of(lines, "began")) == len(of(lines, "ended")) == 1


def test_only_some_tests_are_explored_in_the_given_order(run: Run) -> None:
    only = ["test_it.py::test_order", "test_it.py::test_leaks", "test_it.py::gone"]
    lines = run("--handfast-explore=20s", only=only)
    assert [each["test"] for each in of(lines, "began")] == only[:2]
    assert {each["nodeid"] for each in of(lines, "explored")} == set(only[:2])


def test_pytest_benchmark_makes_no_folder_in_the_project(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        "import pathlib\n"
        "def pytest_addoption(parser):\n"
        "    parser.addoption('--benchmark-storage', default='file://./.benchmarks')\n"
        "def pytest_configure(config):\n"
        "    path = config.getoption('benchmark_storage').removeprefix('file://')\n"
        "    pathlib.Path(path, 'made').mkdir(parents=True)\n"
    )
    lines = run("--collect-only", output=str(pytester.path.parent / "events.jsonl"))
    assert lines == []
    assert not (pytester.path / ".benchmarks").exists()
    (pytester.path.parent / "made").rmdir()


def test_a_suite_that_stops_the_time_is_run_to_its_end(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest, time\n"
        "@pytest.fixture(autouse=True, scope='session')\n"
        "def stopped():\n"
        "    with pytest.MonkeyPatch.context() as patch:\n"
        "        patch.setattr(time, 'monotonic', lambda: 1e12)\n"
        "        yield\n"
    )
    lines = run("--handfast=report", skip=["test_it.py::test_order"])
    assert of(lines, "late") == []
    assert len(of(lines, "ended")) == 3
    assert max(each["seconds"] for each in of(lines, "ended")) < 1e9
    leaks = [leak["code"] for each in of(lines, "report") for leak in each["leaks"]]
    assert leaks == ["HF102"]
