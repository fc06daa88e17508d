"""Virtual time in explored suites, and the suites that bring a loop or a clock of their own."""

from __future__ import annotations

import gc

import pytest

from handfast.pytest_plugin.explore.suite import item_explorer
from tests.pytest_plugin.explore.inner_suites import UNORDERED, Explore, explorer, summary

pytest_plugins = ["pytester"]


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    return explorer(pytester)


@pytest.mark.parametrize(
    "clock",
    ["time.time", "time.monotonic", "time.perf_counter", "monotonic", "wall"],
)
def test_every_clock_follows_the_loop(explore: Explore, clock: str) -> None:
    """A test that sleeps an hour is explored in no time, and its clock readings agree."""
    result = explore(
        UNORDERED
        + f"""
import time
RUNS = []
from time import monotonic, time as wall
@pytest.fixture
def began():
    return {clock}()
@pytest.mark.asyncio
async def test_it(began):
    RUNS.append(1)
    if len(RUNS) > 1:  # in the normal run this would take an hour
        await results()
        await asyncio.sleep(3600)
        assert 3600 <= {clock}() - began < 3601
""",
        "--handfast-schedules=5",
    )
    result.assert_outcomes(passed=1)
    assert summary(result)[0].startswith("1 async test, 5 schedules"), summary(result)


REFUSED = {
    "an event loop": (
        """
class OwnLoop(asyncio.SelectorEventLoop):
    pass
def test_it():
    with asyncio.Runner(loop_factory=OwnLoop) as runner:
        runner.run(asyncio.sleep(0))
""",
        "brings its own event loop (test_it.OwnLoop)",
    ),
    "uvloop": (
        """
import uvloop
@pytest.fixture
def event_loop_policy():
    return uvloop.EventLoopPolicy()
@pytest.mark.asyncio
async def test_it():
    await asyncio.sleep(0)
""",
        "brings its own event loop (a loop that is not asyncio's)",
    ),
    "loop.time": (
        """
@pytest.mark.asyncio
async def test_it(monkeypatch):
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "time", lambda: 5.0)
    await asyncio.sleep(0)
""",
        "brings its own clock (loop.time)",
    ),
    "time.monotonic": (
        """
def frozen():
    return 5.0
@pytest.mark.asyncio
async def test_it(monkeypatch):
    monkeypatch.setattr("time.monotonic", frozen)
    await asyncio.sleep(0)
""",
        "brings its own clock (time.monotonic)",
    ),
    "a poll": (
        """
RUNS = []
@pytest.mark.asyncio
async def test_it():
    RUNS.append(1)
    while len(RUNS) > 1:
        await asyncio.sleep(0.001)
""",
        "polls for something that the explorer does not run, or is very long",
    ),
    "a wait": (
        """
@pytest.mark.asyncio
async def test_it():
    loop = asyncio.get_running_loop()
    if type(loop).__module__.startswith("handfast"):  # as with a source that is not simulated
        await loop.create_future()
""",
        "waits for something outside that the explorer does not run",
    ),
    "a real thread": (
        """
import _thread
@pytest.mark.asyncio
async def test_it():
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()
    _thread.start_new_thread(lambda: loop.call_soon_threadsafe(waiter.set_result, 1), ())
    await waiter
""",
        "uses loop.call_soon_threadsafe",
    ),
    "a second loop": (
        """
def second():
    loop = asyncio.new_event_loop()
    loop.call_soon(loop.stop)
    try:
        loop.run_forever()
    finally:
        loop.close()
@pytest.mark.asyncio
async def test_it():
    await asyncio.to_thread(second)
""",
        "uses a second event loop in thread 1 (asyncio)",
    ),
    "the end of the process": (
        """
import os
@pytest.mark.asyncio
async def test_it():
    if type(asyncio.get_running_loop()).__name__ == "HostedLoop":
        os._exit(0)
""",
        "uses os._exit",
    ),
    "a real child": (
        """
import os
@pytest.mark.asyncio
async def test_it():
    assert os.system("exit 0") == 0
""",
        "uses os.system",
    ),
    "an endless sleep": (
        """
@pytest.mark.asyncio
async def test_it():
    if type(asyncio.get_running_loop()).__name__ == "HostedLoop":
        await asyncio.sleep(float("inf"))
""",
        "waits for something outside that the explorer does not run",
    ),
    "a signal handler": (
        """
import signal
@pytest.mark.asyncio
async def test_it():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)
""",
        "uses loop.add_signal_handler",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_by_name(
    explore: Explore,
    what: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # So many steps would take more than the 5 seconds of a run on a busy machine.
    monkeypatch.setattr(item_explorer, "_PLAIN_STEPS", 2_000)
    source, reason = REFUSED[what]
    result = explore(source, "-v")
    result.assert_outcomes(passed=1)
    assert summary(result)[1:3] == [
        f"1 not explored: 1 {reason}",
        f"  test_it.py::test_it: {reason}",
    ]
    assert summary(result)[-1] == "findings: none"
    gc.collect()
    assert "Task was destroyed" not in caplog.text


LATE = """
import time
async def race():
    seen = []
    async def note(name, delay):
        await asyncio.sleep(delay)
        seen.append(name)
    await asyncio.gather(note("slow", 0.02), note("quick", 0.01))
    return seen
@pytest.mark.asyncio
async def test_it():
    {reading}
    assert await race() == ["quick", "slow"]
"""


def test_lateness_is_only_explored_on_request(explore: Explore) -> None:
    result = explore(LATE.format(reading="pass"))
    result.assert_outcomes(passed=1)
    result = explore(LATE.format(reading="pass"), "--handfast-explore-lateness=0.05")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["the loop or an external event has to be 10 ms late", "confirmed on asyncio's own loop*"]
    )


@pytest.mark.parametrize(
    "reading", ["time.perf_counter()", "time.time_ns()", "asyncio.get_running_loop().time()"]
)
def test_a_test_that_looks_at_a_clock_is_explored_without_lateness(
    explore: Explore, reading: str
) -> None:
    result = explore(LATE.format(reading=reading), "--handfast-explore-lateness=0.05")
    result.assert_outcomes(passed=1)
    assert "1 without lateness: the test looks at a clock" in summary(result)


def test_a_clock_that_the_tested_code_reads_does_not_count(
    explore: Explore, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(library="import time\ndef now():\n    return time.monotonic()\n")
    source = "import library\n" + LATE.format(reading="library.now()")
    result = explore(source, "--handfast-explore-lateness=0.05")
    result.assert_outcomes(passed=1, failed=1)


def test_elapsed_time_is_never_less_than_a_sleep(explore: Explore) -> None:
    """Floating point: 1024.1 - 1024 is less than 0.1."""
    result = explore(
        UNORDERED
        + """
import time
@pytest.mark.asyncio
async def test_it():
    await results()
    for _ in range(20):
        began = time.monotonic()
        await asyncio.sleep(0.01)
        assert 0.01 <= time.monotonic() - began < 0.5
""",
        "--handfast-schedules=5",
    )
    result.assert_outcomes(passed=1)
    assert "5 schedules" in summary(result)[0]


def test_a_test_on_another_loop_is_not_run_again(
    explore: Explore, pytester: pytest.Pytester
) -> None:
    """trio would keep parts of a run that is cut, and the next tests would fail."""
    pytester.makeconftest(
        """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    with pytest.raises(StopIteration):
        pyfuncitem.obj().send(None)
    return True
"""
    )
    result = explore(
        """
RUNS = []
async def test_it():
    RUNS.append(1)
    print(len(RUNS), "runs")
""",
        "-s",
    )
    reason = "brings its own event loop (a loop that is not asyncio's)"
    assert f"1 not explored: 1 {reason}" in summary(result)
    result.stdout.fnmatch_lines(["*1 runs*"])
    assert "2 runs" not in result.stdout.str()
