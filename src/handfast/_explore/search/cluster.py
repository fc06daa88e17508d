"""Workers on other machines: those of a dask.distributed cluster (extra `cluster`).

They need handfast and the modules of the program; the program itself is sent to them. A token that
is found there replays here.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from handfast._explore.loop.determinism import steady
from handfast._explore.search.plan import Invariant, Plan, Record, Settings
from handfast._explore.search.run import Program
from handfast._explore.search.workers import InProcess, in_order, run_share
from handfast._missing_extra import install_line

# Seconds until a cluster that does not answer counts as absent.
_CONNECT_TIMEOUT = 10
_ADDRESS = re.compile(r"inproc://.+|(\w+://)?[^/]+:\d+/?")
_SUCH_AS = "an address such as tcp://10.0.0.1:8786"
# A dask worker has several threads, and a run needs the clocks of its process to itself.
_one_at_a_time = threading.Lock()


class ClusterMissing(RuntimeError):
    """There is no dask.distributed here, or no cluster at the address."""


class Cluster:
    """As many shares as the cluster has workers; the records are put in order again."""

    def __init__(self, program: Program, invariant: Invariant, address: str) -> None:
        self._program = program
        self._invariant = invariant
        self._client: Any = connected(address)

    def run(self, plans: list[Plan], settings: Settings) -> Iterator[Record]:
        count = max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))
        shares = [
            self._client.submit(
                _share, self._program, self._invariant, plans[at::count], settings, pure=False
            )
            for at in range(count)
        ]
        return in_order(self._client.gather(shares), len(plans))

    def close(self) -> None:
        self._client.close()


def connected(address: str) -> Any:
    """A client of the cluster at this address."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise ClusterMissing(
            f"exploring on a cluster needs dask.distributed: {install_line('cluster')}"
        ) from None
    if not _ADDRESS.fullmatch(address):
        # A client that was made for it would wait when it is collected, and print a traceback.
        raise ClusterMissing(f"there is no cluster at {address}: it is not {_SUCH_AS}")
    try:
        connect: Any = Client
        return connect(address, timeout=_CONNECT_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterMissing(f"there is no cluster at {address}: {error}") from error


def _share(program: Program, invariant: Invariant, plans: list[Plan], settings: Settings) -> object:
    """Run a share on a worker of the cluster."""
    with _one_at_a_time, steady(), closing(InProcess(program, invariant)) as in_process:
        return run_share(in_process, plans, settings)
