"""Replace the running task of a key."""

from __future__ import annotations

import asyncio

from benchmarks.comparisons import keyed

N = 10_000


class Replace:
    params = tuple(keyed.PATTERNS)
    param_names = ("pattern",)

    def setup(self, pattern: str) -> None:
        self.runner = asyncio.Runner()
        self.runner.get_loop()

    def teardown(self, pattern: str) -> None:
        self.runner.close()

    def time_replace(self, pattern: str) -> None:
        self.runner.run(keyed.seconds_to_replace(keyed.keyed_replace, keyed.PATTERNS[pattern], N))
