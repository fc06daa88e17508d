"""Async fixtures of an explored test are made and taken down inside each schedule; sync ones are
made once. The inner tests write down what they see, and the outer ones read it."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.inner_pytest import RACE, Run, runner

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    return runner(pytester)


NOTES = """
import pytest_asyncio

def note(word):
    with open("notes", "a") as file:
        file.write(word + "\\n")
"""

KITCHEN = (
    NOTES
    + """
@pytest.fixture
def table():
    note("table")
    yield "table"
    note("table cleared")

@pytest_asyncio.fixture
async def pot(table):
    await asyncio.sleep(0.01)
    note("pot")
    yield [asyncio.get_running_loop(), table]
    await asyncio.sleep(0.01)
    note("pot washed")

@pytest.fixture
async def soup(pot):
    return ("soup", pot)

@pytest.fixture
def spoon(soup, table):
    note("spoon")
    yield ("spoon", soup)
    note("spoon washed")

@pytest.fixture
def bowl(soup):
    return ("bowl", soup)

@pytest.fixture(autouse=True)
async def candle():
    note("candle")
    yield
    note("candle out")

@pytest.mark.explore(schedules=6, stall=0.5)
@pytest.mark.parametrize("guest", ["anna"])
async def test_dinner(guest, spoon, bowl, pot, soup, tmp_path, monkeypatch, table):
    assert (spoon, bowl, soup) == (("spoon", soup), ("bowl", soup), ("soup", pot))
    assert pot == [asyncio.get_running_loop(), "table"]
    assert (guest, table) == ("anna", "table")
    note("dinner")
    await asyncio.gather(*(asyncio.sleep(n / 100) for n in range(3)))
"""
)
ONE_RUN = ["candle", "pot", "spoon", "dinner", "spoon washed", "pot washed", "candle out"]


@pytest.mark.parametrize("plugins", ["strict", "auto", "none", "anyio"])
def test_async_fixtures_are_fresh_in_each_schedule_and_sync_ones_are_shared(
    run: Run, pytester: pytest.Pytester, plugins: str
) -> None:
    arguments = {
        "strict": ["--asyncio-mode=strict"],
        "auto": ["--asyncio-mode=auto", "-p", "no:anyio"],
        "none": ["-p", "no:asyncio", "-p", "no:anyio"],
        "anyio": ["-o", "anyio_mode=auto", "-p", "no:asyncio"],
    }[plugins]
    source = KITCHEN
    if "no:asyncio" in arguments:
        source = source.replace("pytest_asyncio.", "pytest.").replace("import pytest_asyncio", "")
        pytester.makeini("[pytest]\nfilterwarnings = error\naddopts = -p no:langsmith_plugin\n")
    if plugins == "anyio":  # or it would be there once more for trio, where that is installed
        source += "\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    run(source, *arguments).assert_outcomes(passed=1)
    notes = (pytester.path / "notes").read_text().splitlines()
    assert notes == ["table", *ONE_RUN * 6, "table cleared"]


def test_fixtures_of_a_class_are_methods_of_the_instance_that_runs_the_test(run: Run) -> None:
    result = run(
        """
@pytest.fixture
async def me():
    return "nobody"

class TestIt:
    @pytest.fixture
    def me(self, me, other, request):
        assert (me, other) == ("nobody", self)
        assert request.node.name == "test_me"
        return self

    @pytest.fixture
    async def other(self):
        return self

    @pytest.mark.explore
    async def test_me(self, me):
        assert me is self

@pytest.mark.explore
async def test_without_me(me):
    assert me == "nobody"
"""
    )
    result.assert_outcomes(passed=2)


def test_a_fixture_of_an_unmarked_test_is_left_to_the_other_plugin(run: Run) -> None:
    result = run(
        NOTES
        + """
@pytest_asyncio.fixture
async def loop():
    yield asyncio.get_running_loop()

@pytest.mark.asyncio
async def test_other(loop):
    assert loop is asyncio.get_running_loop()
    assert "explore" not in type(loop).__module__

@pytest.mark.explore
async def test_marked(loop):
    assert loop is asyncio.get_running_loop()
    assert "explore" in type(loop).__module__

@pytest.mark.asyncio
async def test_another(loop):
    assert "explore" not in type(loop).__module__
"""
    )
    result.assert_outcomes(passed=3)


def test_an_error_in_a_fixture_is_a_finding_with_its_line(run: Run) -> None:
    result = run(
        RACE
        + """
@pytest.fixture
async def ordered():
    assert await race() == ["quick", "slow"]

@pytest.fixture
async def careless():
    yield
    assert await race() == ["quick", "slow"]

@pytest.mark.explore
async def test_setup(ordered): ...

@pytest.mark.explore
async def test_teardown(careless): ...
"""
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            ">       assert await race() == *",
            "*:14 in ordered",
            ">       assert await race() == *",
            "*:19 in careless",
        ]
    )


def test_a_fixture_that_yields_never_or_twice_is_named(run: Run) -> None:
    result = run(
        """
@pytest.fixture
async def soup(): ...

@pytest.fixture
async def never():
    if False: yield

@pytest.fixture
async def twice():
    yield
    yield

@pytest.fixture
def sync_never(soup):
    if False: yield

@pytest.fixture
def sync_twice(soup):
    yield
    yield
"""
        + "".join(
            f"@pytest.mark.explore\nasync def test_{name}({name}): ...\n"
            for name in ("never", "twice", "sync_never", "sync_twice")
        )
    )
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "E*ValueError: the fixture 'never' did not yield a value",
            "E*ValueError: the fixture 'twice' yields more than once",
            "E*ValueError: the fixture 'sync_never' did not yield a value",
            "E*ValueError: the fixture 'sync_twice' yields more than once",
        ]
    )


def test_an_async_fixture_that_outlives_the_test_is_refused(run: Run) -> None:
    result = run(
        """
@pytest.fixture(scope="module")
async def wide(): ...

@pytest.mark.explore
async def test_it(wide): ...
"""
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["usage error: *'wide' has scope 'module'*scope 'function'*"])


def test_a_fixture_requested_inside_the_test_says_what_to_do(run: Run) -> None:
    result = run(
        """
@pytest.fixture
async def soup(): ...

@pytest.mark.explore
async def test_it(request):
    assert repr(request.getfixturevalue("soup")) == ""
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the fixture 'soup', which is set up in each schedule: *"])
