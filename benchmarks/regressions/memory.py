"""The memory of one tracked task over a bare one, and the peak with many."""

from __future__ import annotations

import asyncio

from benchmarks.live import Scope
from benchmarks.weighing import bytes_per_task

N = 10_000


class Memory:
    def track_bytes_over_bare(self) -> float:
        return bytes_per_task("handfast", N) - bytes_per_task("bare", N)

    track_bytes_over_bare.unit = "bytes"  # type: ignore[attr-defined]

    def peakmem_live(self) -> None:
        asyncio.run(self._live_and_die())

    async def _live_and_die(self) -> None:
        live = Scope(N)
        await live.spawn()
        await live.close()
