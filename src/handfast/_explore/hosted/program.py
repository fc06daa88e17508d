"""A program that is not a coroutine function: a call that creates and closes its own event loops.

What is normal for it is known from its plain run. A schedule is judged by what it does beyond that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Ended(NamedTuple):
    """The error that ended the program, and the phase that raised it."""

    error: BaseException
    phase: str


@dataclass(slots=True)
class Reference:
    """What the plain run does: no schedule is blamed for it."""

    # Errors that reached the loop's exception handler.
    complaints: set[str] = field(default_factory=set)
    # How the tasks ended that the program itself cancels, by number.
    cancelled: dict[int, str] = field(default_factory=dict)
    # The lines that take a lock and do not give it back in the same task.
    unpaired: set[str] = field(default_factory=set)
    # Whether the test itself, and not what it tests, looks at a clock.
    test_reads_clock: bool = False


@dataclass(eq=False, slots=True)
class HostedProgram:
    """`body` runs everything once, and returns how it ended; None if it passed."""

    body: Callable[[], Ended | None]
    name: str
    # The function whose code decides whether a token still fits.
    function: Any = None
    # The clocks at the beginning of each run: monotonic, and what to add for the wall clock.
    clock: float = 1024.0
    wall: float = 1_000_000_000.0
    # Set by the first run, which is the plain one.
    reference: Reference | None = None
    # Whether the last run has left its loop open.
    keeps_loop: bool = False
    # Calls a function in a process of its own; None: runs share this process.
    fork: Callable[[Callable[[], Any]], Any] | None = None

    @property
    def __code__(self) -> CodeType | None:
        return getattr(self.function, "__code__", None)

    def isolated(self, call: Callable[[], T]) -> T:
        """Call a function that runs the program, in a process of its own if that is wanted."""
        if self.fork is None:
            return call()

        def inside() -> tuple[T, Reference | None, bool]:
            self.fork = None
            return call(), self.reference, self.keeps_loop

        result: T
        result, self.reference, self.keeps_loop = self.fork(inside)
        return result

    def __call__(self) -> Ended | None:
        return self.body()
