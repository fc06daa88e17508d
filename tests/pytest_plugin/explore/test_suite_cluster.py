"""`--handfast-explore-cluster` on a real cluster of dask, one of whose workers is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from handfast.pytest_plugin.explore.suite.cluster import Chunk, explore_chunk
from handfast.pytest_plugin.explore.suite.options import WORKER
from tests.conftest import MEASURED
from tests.pytest_plugin.explore.inner_suites import STRICT, Explore, explorer
from tests.pytest_plugin.inner_pytest import HEAD, LEAN

pytest_plugins = ["pytester"]

# The first worker that imports this is killed, after it has begun.
SUITE = f"""
import os
import pathlib
if "{WORKER}" in os.environ:
    try:
        pathlib.Path("killed").touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        os.kill(os.getppid(), 9)
        os._exit(1)
{STRICT}
"""

SCRIPT = """
import os, sys

# This process is measured. Its workers are not: they are killed, maybe while they save their data.
os.environ.pop("COVERAGE_PROCESS_START", None)

import pytest
from distributed import Event, LocalCluster

from handfast._explore.search.cluster import connected
from handfast.pytest_plugin.explore.suite.cluster import Chunk, _results


def lost_and_late(address):
    client = connected(address)
    chunk = Chunk(["test_it.py::test_a"], "", "", [], 1)
    (lost,) = _results(client, {client.submit(int, "no number"): chunk}, 60)
    assert (lost.extent, lost.reason) == ("refused", "its worker was lost (ValueError)")
    never = client.submit(lambda: Event("never").wait())
    (late,) = _results(client, {never: chunk}, 0.1)
    assert late.extent == "budget"
    Event("never", client=client).set()
    client.close()


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        cluster = f"--handfast-explore-cluster={local.scheduler_address}"
        status = pytest.main([*sys.argv[1:], "--handfast-explore", "test_it.py", cluster])
        lost_and_late(local.scheduler_address)
        sys.exit(status)
"""


@pytest.fixture
def explore(pytester: pytest.Pytester) -> Explore:
    return explorer(pytester)


def test_a_worker_that_is_killed_loses_no_finding(
    explore: Explore, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(test_it=HEAD + SUITE)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *LEAN, "--handfast-seconds=60"],
        cwd=pytester.path,
        env={**os.environ, **MEASURED, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert (pytester.path / "killed").exists()
    assert "HF441  the test fails under this schedule" in done.stdout
    assert "FAILED test_it.py::test_order" in done.stdout
    assert "findings: 1 HF441" in done.stdout


def test_tests_that_a_worker_cannot_run_are_named(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("raise SystemExit\n")
    chunk = Chunk(
        ["sub/test_it.py::test_a"], str(tmp_path), str(tmp_path), ["--handfast-explore"], 1
    )
    (result,) = explore_chunk(chunk)
    assert (result["nodeid"], result["extent"]) == ("sub/test_it.py::test_a", "refused")
    assert result["reason"].startswith("does not pass on the worker (pytest ends with exit code ")


def test_the_pytest_of_a_worker_explores_here_and_writes_only_its_results(
    explore: Explore, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = pytester.path / "results.json"
    monkeypatch.setenv(WORKER, json.dumps({"json": str(out), "budget": 30}))
    known = "--handfast-explore-write-baseline=known.json"
    explore(STRICT, "--handfast-explore-cluster=tcp://127.0.0.1:1", known)
    (result,) = json.loads(out.read_text())["tests"]
    assert result["finding"]["code"] == "HF441"
    assert not (pytester.path / "known.json").exists()


@pytest.mark.parametrize(
    ("arguments", "error"), [(("-n2",), "*omit -n*"), ((), "*install*handfast[[]cluster]*")]
)
def test_wrong_use(
    explore: Explore, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], error: str
) -> None:
    pytest.importorskip("xdist")
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = explore(STRICT, "--handfast-explore-cluster=tcp://127.0.0.1:1", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([error])
