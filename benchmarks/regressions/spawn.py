"""Spawn, track and join no-op tasks."""

from __future__ import annotations

import asyncio

from benchmarks.comparisons import spawn

N = 20_000


class Spawn:
    def setup(self) -> None:
        self.runner = asyncio.Runner()
        self.runner.get_loop()

    def teardown(self) -> None:
        self.runner.close()

    def time_left(self) -> None:
        self.runner.run(spawn.scope_left(N))

    def time_closed(self) -> None:
        self.runner.run(spawn.scope_closed(N))
