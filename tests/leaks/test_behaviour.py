"""Whose a leak is, when it is reported, and what it does not change. One suite, run in
each mode once.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.leaks.matrix.leaking_programs import HEAD
from tests.leaks.matrix.runners import CONFTEST, Finding, findings, furnish, run_pytest

POLL = (
    HEAD
    + """
import pytest_asyncio

async def poll():
    while True:
        await asyncio.sleep(3600)
"""
)

# A plugin that begins something when the first test does, and ends it with the session.
PLUGIN = """
import asyncio
import threading

class Telemetry:
    def __init__(self):
        self.loop = None

    def pytest_runtest_setup(self, item):
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
            self.thread.start()
            asyncio.run_coroutine_threadsafe(asyncio.sleep(3600), self.loop)

    def pytest_sessionfinish(self):
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(5)

def pytest_configure(config):
    config.pluginmanager.register(Telemetry())
"""

FILES = {
    "test_failing": """
@pytest.mark.asyncio
async def test_fails_and_leaks():
    asyncio.create_task(poll())  # created
    raise AssertionError("its own failure")

@pytest.fixture
def broken_setup():
    threading.Thread(target=ending.STOP.wait, args=(60,), daemon=True).start()
    raise LookupError("its own set-up")

def test_setup_breaks(broken_setup):
    pass

@pytest.fixture
def broken_teardown():
    yield
    raise LookupError("its own teardown")

@pytest.mark.asyncio
async def test_teardown_breaks(broken_teardown):
    HELD.append(asyncio.create_task(poll()))

@pytest.mark.xfail(strict=True)
@pytest.mark.asyncio
async def test_fails_as_expected():
    HELD.append(asyncio.create_task(poll()))
    raise AssertionError("expected")

@pytest.mark.asyncio
async def test_skips_and_leaks():
    HELD.append(asyncio.create_task(poll()))
    pytest.skip("not today")

def test_fails_alone():
    raise AssertionError("no leak here")
""",
    "test_order": """
def test_leaks():
    threading.Thread(target=ending.STOP.wait, args=(60,), daemon=True).start()
    HELD.append(subprocess.Popen(["sleep", "30"], **QUIET))
    ending.PIDS.append(HELD[-1].pid)

def test_after_it():
    asyncio.run(asyncio.sleep(0))

@pytest.mark.asyncio(loop_scope="module")
async def test_leaks_on_the_loop():
    HELD.append(asyncio.create_task(poll()))
    HELD.append(asyncio.get_running_loop().call_later(3600, int))

@pytest.mark.asyncio(loop_scope="module")
async def test_on_the_same_loop_after_it():
    await asyncio.sleep(0)

@pytest.mark.asyncio
async def test_on_another_loop_after_it():
    await asyncio.sleep(0)
""",
    "test_parameters": """
@pytest.mark.asyncio
@pytest.mark.parametrize("number", [1, 2, 3])
async def test_it(number):
    if number == 2:
        HELD.append(asyncio.create_task(poll()))
""",
    "test_classes": """
class TestIt:
    def setup_method(self):
        self.tasks = []

    @pytest.mark.asyncio
    async def test_leaks(self):
        HELD.append(self)
        self.tasks.append(asyncio.create_task(poll()))

    @pytest.mark.asyncio
    async def test_is_clean(self):
        await asyncio.sleep(0)

class TestUnittest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.task = asyncio.create_task(poll())
        self.addAsyncCleanup(self.end)

    async def end(self):
        if self.id().endswith("clean"):
            self.task.cancel()

    async def test_leaks(self):
        pass

    async def test_is_clean(self):
        pass
""",
    "test_swallower": """
async def stubborn():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@pytest.mark.asyncio
async def test_swallows():
    HELD.append(asyncio.create_task(stubborn()))
    await asyncio.sleep(0)

@pytest.mark.asyncio
async def test_after_it():
    await asyncio.sleep(0)

def test_swallows_under_run():
    async def main():
        asyncio.create_task(stubborn())
        await asyncio.sleep(0)
    asyncio.run(main())
""",
    "test_fixtures": """
@pytest_asyncio.fixture
async def leaky():
    HELD.append(asyncio.create_task(poll()))
    return 1

@pytest.mark.asyncio
async def test_fixture_leaks(leaky):
    await asyncio.sleep(0)

@pytest_asyncio.fixture
async def leaky_teardown():
    yield
    HELD.append(asyncio.create_task(poll()))

@pytest.mark.asyncio
async def test_teardown_leaks(leaky_teardown):
    await asyncio.sleep(0)

@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def wide():
    HELD.append(asyncio.create_task(poll(), name="wide"))
    yield

@pytest.mark.asyncio
async def test_wide_one(wide):
    await asyncio.sleep(0)

@pytest.mark.asyncio(loop_scope="module")
async def test_wide_two(wide):
    await asyncio.sleep(0)

@pytest.fixture(scope="module")
def wide_thread():
    threading.Thread(target=ending.STOP.wait, args=(60,), name="wide", daemon=True).start()
    yield

def test_wide_thread(wide_thread):
    pass

def test_last():
    pass
""",
    "test_session": """
@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service():
    HELD.append(asyncio.create_task(poll(), name="service"))
    yield

@pytest.mark.asyncio(loop_scope="session")
async def test_one(service):
    await asyncio.sleep(0)

@pytest.mark.asyncio(loop_scope="session")
async def test_two(service):
    await asyncio.sleep(0)
""",
    "test_markers": """
@pytest.mark.leaks(check=["+descriptors"])
def test_descriptor():
    HELD.append(socket.socket())

@pytest.mark.leaks(check=["tasks"])
def test_looks_for_tasks_alone():
    threading.Thread(target=ending.STOP.wait, args=(60,), daemon=True).start()

@pytest.mark.leaks(ignore=["HF102"], reason="the poller is ended by the service, see #7")
@pytest.mark.asyncio
async def test_ignored():
    HELD.append(asyncio.create_task(poll()))

@pytest.mark.leaks(grace=0)
@pytest.mark.asyncio
async def test_without_grace():
    HELD.append(asyncio.create_task(poll()))
""",
}

# Test by test, the codes that are its own.
LEAKS = {
    "test_failing::test_fails_and_leaks": ["HF102"],
    "test_failing::test_setup_breaks": ["HF711"],
    "test_failing::test_teardown_breaks": ["HF102"],
    "test_failing::test_fails_as_expected": ["HF102"],
    "test_failing::test_skips_and_leaks": ["HF102"],
    "test_order::test_leaks": ["HF701", "HF711"],
    "test_order::test_leaks_on_the_loop": ["HF102", "HF721"],
    "test_parameters::test_it[2]": ["HF102"],
    "test_classes.TestIt::test_leaks": ["HF102"],
    "test_classes.TestUnittest::test_leaks": ["HF102"],
    "test_swallower::test_swallows": ["HF501"],
    "test_swallower::test_swallows_under_run": ["HF501"],
    "test_fixtures::test_fixture_leaks": ["HF102"],
    "test_fixtures::test_teardown_leaks": ["HF102"],
    "test_markers::test_descriptor": ["HF751"],
    "test_markers::test_without_grace": ["HF102"],
}
# Those that fail by themselves, in any mode.
FAILING = {
    "test_failing::test_fails_and_leaks",
    "test_failing::test_setup_breaks",
    "test_failing::test_teardown_breaks",
    "test_failing::test_fails_alone",
}
# Leaks of a fixture of wider scope: reported once, after its teardown.
WIDE = {"wide": ["HF102", "HF711"], "service": ["HF102"]}


class Run:
    """One run of the suite."""

    def __init__(self, root: Path, *arguments: str) -> None:
        furnish(root, more="handfast_grace = 0.05")
        (root / "conftest.py").write_text(CONFTEST)
        (root / "telemetry.py").write_text(PLUGIN)
        for name, source in FILES.items():
            (root / f"{name}.py").write_text(POLL + source)
        common = ["-p", "telemetry", "-rA", "--junitxml=results.xml"]
        self.done: subprocess.CompletedProcess[str] = run_pytest(
            root, *common, *arguments, env={"PYTHONPATH": str(root)}
        )
        self.printed = self.done.stdout
        self.statuses: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        for case in ElementTree.parse(root / "results.xml").iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            status = "+".join(e.tag for e in case if e.tag in ("error", "failure", "skipped"))
            text = "\n".join(e.text or "" for e in case)
            self.statuses[name] = "+".join(filter(None, [self.statuses.get(name), status]))
            self.texts[name] = self.texts.get(name, "") + text

    @property
    def findings(self) -> list[Finding]:
        """All that was printed; the short summary at the end does not count."""
        return findings(self.printed.partition("short test summary info")[0])

    def of(self, test: str) -> list[str]:
        """The codes that are reported for the test, as printed."""
        node = test.replace("test_classes.", "test_classes.py::").replace("::", ".py::", 1)
        node = node.replace("test_classes.py.py", "test_classes.py")
        return sorted(each.code for each in self.findings if _is_test(each.owner, node))


def _is_test(owner: str, node: str) -> bool:
    return re.match(re.escape(node) + r"(\s|$|,|;|:)", owner) is not None


MODES = {
    "plain": (),
    "fail": ("--handfast",),
    "report": ("--handfast=report",),
    "xdist": ("--handfast", "-n", "2"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Run]]]:
    root = tmp_path_factory.mktemp("behaviour")
    with ThreadPoolExecutor(2) as pool:
        without = ("--deselect=test_swallower.py",)  # without us it would hang
        yield {
            mode: pool.submit(Run, root / mode, *arguments, *(() if arguments else without))
            for mode, arguments in MODES.items()
        }


@pytest.fixture
def fail(runs: dict[str, Future[Run]]) -> Run:
    return runs["fail"].result()


@pytest.fixture
def report(runs: dict[str, Future[Run]]) -> Run:
    return runs["report"].result()


@pytest.mark.parametrize("mode", ["fail", "xdist"])
@pytest.mark.parametrize("test", LEAKS)
def test_each_leak_is_reported_for_its_test(
    runs: dict[str, Future[Run]], mode: str, test: str
) -> None:
    run = runs[mode].result()
    assert run.of(test) == LEAKS[test], run.printed


@pytest.mark.parametrize("mode", ["fail", "xdist"])
@pytest.mark.parametrize("fixture", WIDE)
def test_leaks_of_a_wide_fixture_are_reported_once_after_its_teardown(
    runs: dict[str, Future[Run]], mode: str, fixture: str
) -> None:
    run = runs[mode].result()
    named = [f for f in run.findings if re.search(rf"'{fixture}'", f.what)]
    # Each worker of xdist makes it for itself.
    codes = {each.code for each in named}
    assert codes == set(WIDE[fixture]), run.printed
    if mode == "fail":
        assert len(named) == len(WIDE[fixture]), run.printed
    for each in named:
        assert fixture in each.owner, run.printed
        assert each.created_at.startswith(("test_fixtures.py:", "test_session.py:"))


@pytest.mark.parametrize("mode", ["fail", "xdist"])
def test_nothing_else_is_reported(runs: dict[str, Future[Run]], mode: str) -> None:
    run = runs[mode].result()
    codes = Counter(each.code for each in run.findings if "wide" not in each.owner)
    codes -= Counter(each.code for each in run.findings if "service" in each.owner)
    assert codes == Counter(code for found in LEAKS.values() for code in found), run.printed


def test_a_leak_in_a_test_that_passed_is_an_error_at_teardown(fail: Run) -> None:
    own = {test for test in LEAKS if test not in FAILING and "as_expected" not in test}
    for test in own - {"test_failing::test_skips_and_leaks"}:
        assert fail.statuses[test] == "error", (test, fail.printed)
        assert LEAKS[test][0] in fail.texts[test]
    assert fail.done.returncode == 1


def test_a_test_that_failed_keeps_its_failure_as_the_headline(fail: Run) -> None:
    test = "test_failing::test_fails_and_leaks"
    assert fail.statuses[test] == "failure"
    assert "its own failure" in fail.texts[test]
    _, failures = fail.printed.split("its own failure", 1)
    section = failures.partition("HF102")[0].splitlines()[-4:]
    assert any("handfast" in line and line.startswith("--") for line in section), fail.printed


def test_a_fixture_that_broke_keeps_its_error_as_the_headline(fail: Run) -> None:
    assert fail.statuses["test_failing::test_setup_breaks"] == "error"
    assert "its own set-up" in fail.texts["test_failing::test_setup_breaks"]
    assert fail.statuses["test_failing::test_teardown_breaks"] == "error"
    assert "its own teardown" in fail.texts["test_failing::test_teardown_breaks"]


def test_a_test_that_was_to_fail_is_still_one(fail: Run) -> None:
    assert fail.statuses["test_failing::test_fails_as_expected"] == "skipped"


@pytest.mark.parametrize(
    "test",
    [
        "test_order::test_after_it",
        "test_order::test_on_the_same_loop_after_it",
        "test_order::test_on_another_loop_after_it",
        "test_parameters::test_it[1]",
        "test_parameters::test_it[3]",
        "test_classes.TestIt::test_is_clean",
        "test_classes.TestUnittest::test_is_clean",
        "test_swallower::test_after_it",
        "test_markers::test_looks_for_tasks_alone",
        "test_markers::test_ignored",
    ],
)
@pytest.mark.parametrize("mode", ["fail", "report", "xdist"])
def test_the_tests_around_a_leak_pass(runs: dict[str, Future[Run]], mode: str, test: str) -> None:
    run = runs[mode].result()
    # The leaks of fixtures of wider scope are reported with the last test of a worker.
    owners = {each.owner.partition(" ")[0] for each in findings(run.texts.get(test, ""))}
    assert run.statuses[test] == "" or (mode == "xdist" and owners == {"fixture"}), run.printed


def test_what_another_plugin_runs_is_no_leak(fail: Run) -> None:
    assert not [each for each in fail.findings if "telemetry" in each.created_at], fail.printed


def test_report_mode_changes_no_outcome(runs: dict[str, Future[Run]], report: Run) -> None:
    plain = runs["plain"].result()
    assert report.done.returncode == plain.done.returncode == 1
    theirs = {
        name: s for name, s in report.statuses.items() if not name.startswith("test_swallower")
    }
    assert theirs == plain.statuses
    assert {
        name for name, status in plain.statuses.items() if status not in ("", "skipped")
    } == FAILING


@pytest.mark.parametrize("test", LEAKS)
def test_report_mode_lists_each_leak_at_the_end(report: Run, test: str) -> None:
    end = report.printed.partition("handfast: leaks")[2]
    node = test.replace("test_classes.", "test_classes::").split("::")
    assert end, report.printed
    assert f"{node[0]}.py::" + "::".join(node[1:]) in end, end
    assert all(code in end for code in LEAKS[test]), end


def test_junit_has_each_test_once_and_each_leak_as_an_error(fail: Run) -> None:
    errors = [name for name, status in fail.statuses.items() if status == "error"]
    assert set(errors) >= {"test_order::test_leaks", "test_parameters::test_it[2]"}
    text = fail.texts["test_parameters::test_it[2]"]
    assert "left by     test_parameters.py::test_it[2]" in text
    assert re.search(r"created at  test_parameters.py:\d+ in test_it", text)
    assert re.search(r"waiting at  test_parameters.py:\d+ in poll", text)
