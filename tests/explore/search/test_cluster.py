"""A campaign on a real cluster finds what this process would have found.

The cluster, and dask itself, live in a process of their own: what they leave to the collector and
to their threads is no business of the tests that come after.
"""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

from handfast._explore.search.cluster import Cluster, ClusterMissing
from tests.conftest import MEASURED
from tests.explore.test_result import fine

SCRIPT = """
import os

# This process is measured. Its workers are not: they are killed, maybe while they save their data.
os.environ.pop("COVERAGE_PROCESS_START", None)

from distributed import LocalCluster

from handfast._explore.search import cluster
from handfast.explore import explore
from handfast._explore.search.cluster import Cluster, ClusterMissing
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.workers import InProcess
from tests.explore.test_result import fine, leaky, racy


def same_records(address):
    plans = [Plan(tail="random", seed=seed) for seed in range(10)]
    crew = Cluster(racy, None, address)
    try:
        there = [(r.plan.seed, r.taken, r.steps) for r in crew.run(plans, Settings())]
    finally:
        crew.close()
    here = [(r.plan.seed, r.taken, r.steps) for r in InProcess(racy, None).run(plans, Settings())]
    assert there == here


def same_tokens(address):
    for program, cancel in ((racy, False), (leaky, True)):
        there = explore(program, cancel=cancel, cluster=address).counterexample
        here = explore(program, cancel=cancel).counterexample
        assert there.token == here.token
        assert there.replay().code == here.code
    assert explore(fine, cluster=address).complete


def nobody_there():
    cluster._CONNECT_TIMEOUT = 0.5
    try:
        Cluster(fine, None, "nowhere")
    except ClusterMissing as error:
        assert "there is no cluster at nowhere" in str(error)
    else:
        raise AssertionError


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as local:
        same_records(local.scheduler_address)
        same_tokens(local.scheduler_address)
    nobody_there()
    print("as here")
"""


def test_a_cluster_gives_the_same_records_in_the_same_order_and_the_same_tokens() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **MEASURED, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout) == (0, "as here\n"), done.stderr


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterMissing, match=r"handfast\[cluster\]"):
        Cluster(fine, None, "tcp://127.0.0.1:1")


@pytest.mark.parametrize("address", ["nowhere", "tcp://nowhere"])
def test_an_address_without_a_port_is_refused_before_dask_connects(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", types.SimpleNamespace(Client=None))
    with pytest.raises(ClusterMissing, match=f"no cluster at {address}: it is not an address"):
        Cluster(fine, None, address)
