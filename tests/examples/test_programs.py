"""The common programs: the versions with handfast, asyncio and anyio do the same.

Each `demo` is explored, so its hours pass in virtual time and its result must not depend on timing.
The program that is stopped by SIGTERM runs as a process.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path

import pytest

from examples import programs
from examples.programs.lines import count, table
from handfast.explore import explore, victim

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "programs.md").read_text()
EXPECTED: dict[str, object] = {
    "fan_out": ([f"page {n}" for n in range(6)], ["OSError(9)"], 3, 0),
    "first_success": ("from quick", ["broken", "quick", "slow", "broken", "broken"], 2),
    "race_with_timeout": ("after 0.1", None, [0.1, 1800, 3600, 3600]),
    "wait_until_ready": ("answer of 8080", ["opened", "used", "closed", "failed"]),
    "periodic": ("worked", [0, 60, 120, 240, 300]),
    "worker_pool": (["a", "b", "c", "d"], 3, 0),
    "supervisor": ("worked, then 1 error", [0, 1, 3, 10, 11, 13, 17]),
    "debounce": [("b", "b1"), ("a", "a4")],
    "single_flight": (["A", "A", "A", "B"], ["OSError('b')"] * 2, ["a", "b", "b"], True),
    "producer_consumer": ([*range(8)], ["full", "source"], 2, True, 3, 0),
    "merged_streams": (
        ["a0", "b0", "a1", "b1", "c0", "d0", "c1", "broken0"],
        ["OSError('broken')"],
        6,
        6,
    ),
}
# They report a failure to the loop's exception handler, which logs it: the cache if no caller is
# left, `map` if the caller was cancelled before it came to the failed call.
LOGS = {
    "fan_out",
    "periodic",
    "worker_pool",
    "supervisor",
    "single_flight",
    "producer_consumer",
}

each_library = pytest.mark.parametrize("library", programs.LIBRARIES)


def version_of(name: str, library: str) -> object:
    return import_module(f"examples.programs.{name}.with_{library}")


def ignored(name: str) -> list[str]:
    return ["HF604"] if name in LOGS else []


@each_library
@pytest.mark.parametrize("name", EXPECTED)
def test_the_versions_of_a_program_do_the_same(name: str, library: str) -> None:
    demo = import_module(f"examples.programs.{name}").demo
    version = version_of(name, library)

    async def program() -> None:
        assert await demo(version) == EXPECTED[name]

    found = explore(program, schedules=100, ignore=ignored(name))
    assert found.counterexample is None, str(found)


@each_library
def test_a_server_finishes_its_requests_after_sigterm(library: str) -> None:
    from examples.programs.graceful_shutdown import demo

    output = b"ready\nshort answered\nlong cancelled\nclosed\n"
    version = version_of("graceful_shutdown", library)
    assert asyncio.run(demo(version)) == (output, True, 143)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_cancelled_program_leaves_no_task(name: str) -> None:
    """The version with handfast. A TaskGroup that fails while it is cancelled loses the cancel on 3.11
    and 3.12 (#116720), so this is not required of the others."""
    demo = import_module(f"examples.programs.{name}").demo
    version = version_of(name, "handfast")

    async def program() -> None:
        outcome = await victim(demo(version))
        if outcome.failed:  # an error of the demo that came together with the cancel is not lost
            assert outcome.error is not None
            assert "OSError" in "".join(traceback.format_exception(outcome.error))
        assert outcome.failed or outcome.cancelled or outcome.value == EXPECTED[name]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    found = explore(program, schedules=100, cancel=True, ignore=ignored(name))
    assert found.counterexample is None, str(found)


def test_the_guide_includes_every_version_once() -> None:
    included = re.findall(r'--8<-- "examples/programs/(\w+)/with_(\w+)\.py"', GUIDE)
    assert included == [(name, each) for name in programs.NAMES for each in programs.LIBRARIES]
    assert {*EXPECTED, "graceful_shutdown"} == {*programs.NAMES}


def test_the_guide_shows_what_the_command_counts() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "examples.programs"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert printed == table() + "\n"
    assert f"$ python -m examples.programs\n{printed}" in GUIDE


def test_the_handfast_version_is_the_shortest_where_the_guide_says_so() -> None:
    def lines(name: str, library: str) -> int:
        return count(programs.version_file(name, library).read_text())

    shortest = [
        name
        for name in programs.NAMES
        if all(lines(name, "handfast") < lines(name, other) for other in ("asyncio", "anyio"))
    ]
    others = [f"`{name}`" for name in programs.NAMES if name not in shortest]
    assert f"has the fewest lines of the three in all but {' and '.join(others)}.\n" in GUIDE


def test_blank_lines_comments_and_docstrings_are_not_counted() -> None:
    docstrings = '"""Title.\n\nMore.\n"""\n\nimport x  # why\n\n\ndef f():\n    """Doc."""\n'
    source = docstrings + "    # why\n    return (\n        x\n    )\n"
    assert count(source) == 5
