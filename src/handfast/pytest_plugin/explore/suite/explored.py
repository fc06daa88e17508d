"""The result for one test of an explored suite: plain data, which xdist sends between processes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

# all: every schedule was run; sampled: some were; single: nothing can be reordered; refused: it was
# not explored, for a reason; budget: there was no time left.
Extent: TypeAlias = Literal["all", "sampled", "single", "refused", "budget"]


@dataclass(frozen=True, slots=True)
class SuiteFinding:
    """A schedule that breaks a test."""

    code: str
    message: str
    where: str
    # The schedule, the line that replays it, the whole text, and the key rows for the summary.
    token: str
    replay: str
    text: str
    # How often it happened in how many runs on asyncio's own loop.
    confirmed: int = 0
    tries: int = 0

    @property
    def evidence(self) -> str:
        """Whether asyncio's own loop shows it too."""
        runs = "1 run" if self.tries == 1 else f"{self.tries} runs"
        if self.confirmed:
            return f"confirmed on asyncio's own loop (in {runs})"
        return f"not confirmed on asyncio's own loop ({runs})"


@dataclass(frozen=True, slots=True)
class Explored:
    """How far a test was explored, and what was found."""

    nodeid: str
    extent: Extent
    reason: str = ""
    schedules: int = 0
    seconds: float = 0.0
    finding: SuiteFinding | None = None
    # Whether the loop was never late although that was wanted: the test reads a clock.
    on_time: bool = False

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Explored:
        finding = data.pop("finding")
        return cls(**data, finding=SuiteFinding(**finding) if finding else None)
