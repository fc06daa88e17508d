"""The time of `import handfast`, in a fresh process."""

from __future__ import annotations

from benchmarks.comparisons.importing import seconds_to_import

ROUNDS = 10


class Import:
    def track_over_asyncio(self) -> float:
        rounds = [
            (seconds_to_import("handfast"), seconds_to_import("asyncio")) for _ in range(ROUNDS)
        ]
        return min(ours for ours, _ in rounds) / min(theirs for _, theirs in rounds)

    track_over_asyncio.unit = "x asyncio"  # type: ignore[attr-defined]

    def timeraw_handfast(self) -> str:
        return "import handfast"
