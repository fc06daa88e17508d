"""Replace the live task of a key."""

from __future__ import annotations

import asyncio

from benchmarks.comparisons import slots

N = 10_000


class Replace:
    params = tuple(slots.PATTERNS)
    param_names = ("pattern",)

    def setup(self, pattern: str) -> None:
        self.runner = asyncio.Runner()
        self.runner.get_loop()

    def teardown(self, pattern: str) -> None:
        self.runner.close()

    def time_replace(self, pattern: str) -> None:
        self.runner.run(slots.seconds_to_replace(slots.slots_replace, slots.PATTERNS[pattern], N))
