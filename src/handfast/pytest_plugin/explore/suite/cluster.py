"""`--handfast-explore-cluster`: the tests of a suite on the workers of a dask.distributed cluster.

A worker gets some tests of one file, runs pytest on them in a process of its own, and sends back the
results. It needs the same files in the same place. What a worker had that is lost, another one does
again: the scheduler of the cluster sees to that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handfast._explore.search.cluster import ClusterMissing, connected
from handfast.pytest_plugin.explore.suite.explored import Explored
from handfast.pytest_plugin.explore.suite.options import WORKER, SuiteOptions

# Tests of one file that are sent together: each process has to start pytest and import the file.
_TOGETHER = 20
# Seconds for that start and the normal runs, and for the plain order of the explored tests.
_START, _LOOK = 60.0, 10.0


class Chunk(NamedTuple):
    """Some tests, and how to run them."""

    tests: list[str]
    root: str
    folder: str
    arguments: list[str]
    seconds: float


def explore_on_cluster(
    config: pytest.Config, options: SuiteOptions, tests: Sequence[str]
) -> Iterator[Explored]:
    """The results as they come; the tests for which there was no time last."""
    assert options.cluster is not None
    try:
        client = connected(options.cluster)
    except ClusterMissing as error:
        raise pytest.UsageError(f"--handfast-explore-cluster: {error}") from None
    try:
        workers = max(1, len(client.scheduler_info(n_workers=-1)["workers"]))
        share = min(options.per_test, options.budget * workers / len(tests))
        chunks = list(_chunks(config, tests, share))
        futures = {client.submit(explore_chunk, each, pure=False): each for each in chunks}
        yield from _results(client, futures, options.budget + _START)
    finally:
        client.close()


def _results(client: Any, futures: dict[Any, Chunk], seconds: float) -> Iterator[Explored]:
    import distributed

    left = dict(futures)
    in_turn: Any = distributed.as_completed  # it has no types
    try:
        for done in in_turn(list(futures), loop=client.loop, timeout=seconds):
            chunk = left.pop(done)
            error = done.exception()
            if error is None:
                yield from map(Explored.from_data, done.result())
            else:
                yield from _refused(chunk.tests, f"its worker was lost ({type(error).__name__})")
    except TimeoutError:
        client.cancel(list(left))
        yield from (Explored(test, "budget") for chunk in left.values() for test in chunk.tests)


def _refused(tests: Iterable[str], reason: str) -> Iterator[Explored]:
    return (Explored(test, "refused", reason) for test in tests)


def _chunks(config: pytest.Config, tests: Sequence[str], seconds: float) -> Iterator[Chunk]:
    named = set(map(str, config.option.file_or_dir))
    arguments = [str(each) for each in config.invocation_params.args if str(each) not in named]
    root, folder = str(config.rootpath), str(config.invocation_params.dir)
    for _, group in groupby(tests, lambda test: test.partition("::")[0]):
        of_file = list(group)
        for at in range(0, len(of_file), _TOGETHER):
            some = of_file[at : at + _TOGETHER]
            yield Chunk(some, root, folder, arguments, _LOOK + seconds * len(some))


def explore_chunk(chunk: Chunk) -> list[dict[str, Any]]:
    """Called on a worker: run pytest on the tests; the results as plain data."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        settings = json.dumps({"json": str(out), "budget": chunk.seconds})
        names = [_from_folder(chunk, test) for test in chunk.tests]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *chunk.arguments, *names],
            cwd=chunk.folder,
            env={**os.environ, WORKER: settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            results: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))["tests"]
        except (OSError, ValueError):
            results = []
    missing = set(chunk.tests) - {each["nodeid"] for each in results}
    reason = f"does not pass on the worker (pytest ends with exit code {done.returncode})"
    return results + [each.to_data() for each in _refused(sorted(missing), reason)]


def _from_folder(chunk: Chunk, test: str) -> str:
    """A test is named relative to the root folder, but pytest looks from where it is started."""
    file, colons, name = test.partition("::")
    return f"{os.path.relpath(Path(chunk.root, file), chunk.folder)}{colons}{name}"
