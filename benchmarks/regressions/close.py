"""Close with many live tasks."""

from __future__ import annotations

import asyncio

from benchmarks.live import Scope


class Close:
    params = (10_000, 100_000)
    param_names = ("tasks",)
    # A closed scope cannot be closed again: each sample needs its own set-up.
    number = 1
    warmup_time = 0

    def setup(self, tasks: int) -> None:
        self.runner = asyncio.Runner()
        self.live = Scope(tasks)
        self.runner.run(self.live.spawn())

    def teardown(self, tasks: int) -> None:
        self.runner.close()

    def time_live(self, tasks: int) -> None:
        self.runner.run(self.live.close())
