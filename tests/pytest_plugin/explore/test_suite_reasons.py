"""The reason for which `--handfast-explore` does not explore a test."""

from __future__ import annotations

import os
from typing import Any

import pytest

from handfast._explore.search.run import run as real_run
from handfast.pytest_plugin.explore.suite import explorer as suite_explorer
from handfast.pytest_plugin.explore.suite import item_explorer
from tests.pytest_plugin.explore.inner_suites import UNORDERED, Explore, explorer, summary

pytest_plugins = ["pytester"]


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    return explorer(pytester)


def test_a_second_run_that_fails_on_any_loop_is_not_repeatable(explore: Explore) -> None:
    result = explore(
        UNORDERED
        + """
HEADERS = {"once": 1}
@pytest.mark.asyncio
async def test_it():
    await results()
    assert HEADERS.pop("once", None)
"""
    )
    assert summary(result)[1] == "1 not explored: 1 not repeatable in one process"


def test_a_test_that_fails_only_on_the_explored_loop_says_how(explore: Explore) -> None:
    result = explore(
        UNORDERED
        + """
@pytest.mark.asyncio
async def test_it():
    await results()
    module = type(asyncio.get_running_loop()).__module__
    assert module.startswith(("asyncio.", "handfast._explore.hosted.stock"))
"""
    )
    reason = "does not run on the explorer's loop: AssertionError"
    assert summary(result)[1] == f"1 not explored: 1 {reason}"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_process_that_ends_in_the_check_changes_no_reason(explore: Explore) -> None:
    result = explore(
        UNORDERED
        + """
import os
@pytest.mark.asyncio
async def test_it():
    await results()
    with open("runs", "a+") as file:
        file.write(".")
        file.seek(0)
        runs = len(file.read())
    if runs == 3:
        os._exit(3)
    assert runs == 1
""",
        "--handfast-explore-isolated",
    )
    reason = "does not run on the explorer's loop: AssertionError"
    assert summary(result)[1] == f"1 not explored: 1 {reason}"


def test_a_finalizer_that_joins_a_thread_without_end_is_cut(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (item_explorer, suite_explorer):
        monkeypatch.setattr(module, "RUN_SECONDS", 0.2)
    result = explore(
        UNORDERED
        + """
import _thread
import threading
LOCK = _thread.allocate_lock()
@pytest.fixture
def thread(request):
    thread = threading.Thread(target=LOCK.acquire, daemon=True)  # the second one waits forever
    thread.start()
    request.addfinalizer(thread.join)
    request.config.add_cleanup(lambda: LOCK.locked() and LOCK.release())
@pytest.mark.asyncio
async def test_it(thread):
    await results()
"""
    )
    assert summary(result)[1] == "1 not explored: 1 a run takes more than 0.2 s"


def test_garbage_whose_finalizer_never_ends_is_cut(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite_explorer, "RUN_SECONDS", 0.2)
    result = explore(
        UNORDERED
        + """
class Context:
    def __init__(self):
        self.itself = self
    def __del__(self):
        while True:
            pass
@pytest.mark.asyncio
async def test_it():
    if type(asyncio.get_running_loop()) is not asyncio.SelectorEventLoop:
        Context()
    await asyncio.sleep(0)
"""
    )
    assert summary(result)[0].startswith("1 async test, ")


def test_what_a_wider_fixture_does_is_the_reason_for_each_of_its_tests(explore: Explore) -> None:
    result = explore(
        UNORDERED
        + """
import subprocess, sys
class TestIt:
    @pytest.fixture(scope="class", autouse=True)
    def agent(self):
        async def start():
            subprocess.run([sys.executable, "-c", ""])
        asyncio.run(start())
    @pytest.mark.asyncio
    async def test_one(self):
        await results()
    @pytest.mark.asyncio
    async def test_two(self):
        await results()
"""
    )
    assert summary(result)[1] == "2 not explored: 2 uses subprocess.Popen"


def test_a_server_that_only_asyncio_reaches(explore: Explore) -> None:
    """A blocking socket is real, and the server on the explorer's loop is not."""
    result = explore(
        UNORDERED
        + """
import socket
@pytest.mark.asyncio
async def test_it():
    served = asyncio.Event()
    def serve(_, writer):
        writer.close()
        served.set()
    server = await asyncio.start_server(serve, "127.0.0.1")
    address = server.sockets[0].getsockname()
    try:
        await asyncio.to_thread(lambda: socket.create_connection(address, 5).close())
    except OSError as error:
        raise RuntimeError("no connection") from error
    await served.wait()  # or the connection would be left open
    server.close()
    await server.wait_closed()
"""
    )
    reason = "connects to something outside that the explorer does not run"
    assert summary(result)[1] == f"1 not explored: 1 {reason}"


def test_an_executor_that_cannot_be_shut_down_with_its_loop(explore: Explore) -> None:
    result = explore(
        UNORDERED
        + """
from concurrent.futures import ThreadPoolExecutor
class Executor(ThreadPoolExecutor):
    def shutdown(self, wait=True, **_):
        super().shutdown(wait=True)
        raise RuntimeError("Event loop is closed")
@pytest.mark.parametrize("closes", [True, False])
def test_it(closes):
    loop = asyncio.new_event_loop()
    loop.set_default_executor(Executor())
    assert len(loop.run_until_complete(results())) == 2
    if closes or type(loop) is asyncio.SelectorEventLoop:
        with pytest.raises(RuntimeError):
            loop.close()
""",
        "--handfast-schedules=20",
    )
    assert result.ret == 0
    assert "2 sampled" in summary(result)[0]


def test_an_internal_error_is_the_reason_for_one_test(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(program: Any, *arguments: Any) -> Any:
        if "test_one" in program.name:
            raise RuntimeError("oops")
        return real_run(program, *arguments)

    monkeypatch.setattr(f"{item_explorer.__name__}.run", run)
    result = explore(
        """
@pytest.mark.asyncio
async def test_one():
    pass
@pytest.mark.asyncio
async def test_two():
    pass
"""
    )
    assert "1 with one schedule only" in summary(result)[0]
    assert summary(result)[1] == "1 not explored: 1 handfast itself fails: RuntimeError: oops"
