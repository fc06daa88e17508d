"""A crew on other machines: the workers of a dask.distributed cluster (extra `cluster`).

They need holdfast and the program's modules; the program itself is sent along. A token that is
found there replays here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from holdfast.explore.plan import Plan, Record, Settings
from holdfast.explore.run import Program
from holdfast.explore.steady import steady
from holdfast.explore.workers import Alone, Invariant, answered, in_order

__all__ = ["Cluster", "ClusterMissing"]

# Seconds until a cluster that does not answer counts as absent.
_PATIENCE = 10
# A dask worker has several threads, and a run needs the clocks of its process to itself.
_one_at_a_time = threading.Lock()


class ClusterMissing(RuntimeError):
    """There is no dask.distributed here, or no cluster at the address."""


class Cluster:
    """As many shares as the cluster has workers; the records are put in order again."""

    def __init__(self, program: Program, invariant: Invariant, address: str) -> None:
        self._program = program
        self._invariant = invariant
        self._client: Any = _connected(address)

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


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise ClusterMissing(
            'exploring on a cluster needs dask.distributed: pip install "holdfast[cluster]"'
        ) from None
    try:
        connect: Any = Client
        return connect(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterMissing(f"there is no cluster at {address}: {error}") from error


def _share(program: Program, invariant: Invariant, plans: list[Plan], settings: Settings) -> object:
    """What runs on a worker of the cluster."""
    with _one_at_a_time, steady():
        return answered(Alone(program, invariant), plans, settings)
