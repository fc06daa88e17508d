"""Beside other plugins for asyncio: the marked test is explored, the others are theirs."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.pytest_plugin.inner_pytest import Run, runner

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    return runner(pytester)


# Each test records the class of its loop.
SUITE = """
def kind():
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]

@pytest.mark.explore(schedules=3)
async def test_explored():
    assert kind() == "handfast"

@pytest.mark.explore(schedules=3)
@pytest.mark.asyncio
async def test_both():
    assert kind() == "handfast"

@pytest.mark.asyncio
async def test_theirs():
    assert kind() != "handfast"

class TestClass:
    @pytest.mark.explore(schedules=3)
    @pytest.mark.parametrize("number", [1, 2])
    async def test_method(self, number):
        assert kind() == "handfast"

def test_sync(): ...
"""
ANYIO = """
@pytest.mark.explore(schedules=3)
@pytest.mark.anyio
async def test_anyio():
    import anyio
    await anyio.sleep(1)
    assert kind() == "handfast"

@pytest.mark.anyio
async def test_anyio_theirs():
    assert kind() != "handfast"
"""
BACKEND = """
@pytest.fixture(params=["asyncio", ("asyncio", {"debug": True}), "trio", ("trio", {})])
def anyio_backend(request):
    return request.param
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_with_pytest_asyncio_in_either_mode(run: Run, mode: str) -> None:
    auto = "async def test_auto():\n    assert kind() != 'handfast'\n" * (mode == "auto")
    result = run(SUITE + auto, f"--asyncio-mode={mode}")
    result.assert_outcomes(passed=6 + bool(auto))


def test_with_the_plugin_of_anyio(run: Run, pytester: pytest.Pytester) -> None:
    own = "\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    run(SUITE + ANYIO + own).assert_outcomes(passed=8)
    # Without pytest-asyncio its marker and its option are unknown.
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = -p no:langsmith_plugin\n")
    alone = SUITE.replace("@pytest.mark.asyncio", "@pytest.mark.anyio") + ANYIO + own
    run(alone, "-p", "no:asyncio", "-o", "anyio_mode=auto").assert_outcomes(passed=8)


def test_anyios_other_backends_are_skipped_with_the_reason(run: Run) -> None:
    marked = ANYIO.partition("\n@pytest.mark.anyio\nasync def test_anyio_theirs")[0]
    kind = SUITE.partition("@pytest")[0]
    result = run(kind + BACKEND + marked, "-rs")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED * supports only asyncio, and this test is for trio"])


def test_anyios_marker_added_late_does_not_take_the_test_away(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        """
from importlib.util import find_spec

import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.anyio)
"""
    )
    kind = SUITE.partition("@pytest")[0]
    explored = (
        "@pytest.mark.explore(schedules=3)\nasync def test_it():\n    assert kind() == 'handfast'\n"
    )
    # Where trio is installed, the test is there once more for that.
    for_trio = int(find_spec("trio") is not None)
    run(kind + explored, "-k", "asyncio or test_it").assert_outcomes(passed=1, skipped=for_trio)


def test_with_no_other_plugin_at_all(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = -p no:langsmith_plugin\n")
    alone = "\n\n".join(part for part in SUITE.split("\n\n") if "mark.asyncio" not in part)
    result = run(alone, "-p", "no:asyncio", "-p", "no:anyio")
    result.assert_outcomes(passed=4)
