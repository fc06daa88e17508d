"""The stock loop as it is published, on a virtual clock that runs late at random.

The order of handles is `BaseEventLoop._run_once`'s own; only the clock, and with it how late the
code and the timers are, is made here, from a seed. Whatever a program does on it must be among
the outcomes that the explorer lists.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from handfast._explore.loop.stepped_loop import LeftOver, SteppedLoop
from handfast._explore.loop.stepping import Deadlocked
from handfast._explore.loop.unsupported import Refusing
from tests.support.stepping import StepQueue, WrappedSelector

# On a real clock the later of two calls has the later deadline, be it by this much.
_APART = 1e-11
# A clock this coarse takes such timers for one moment; a finer one tells them apart.
_COARSE, _FINE = 1e-4, 1e-12
# Reads the clock to start a timer.
_TIMEOUT: Any = asyncio.timeout.__code__
# How long what is outside takes, in seconds; one of these for a run.
_ANSWERS = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)
# Real seconds for a thread to hand something over.
_THREAD_TIMEOUT = 5.0


def _refused(name: str) -> Any:
    def refuse(self: Refusing, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse(f"loop.{name}", "the stock loop with delays has no outside")

    refuse.__name__ = name
    return refuse


class _Selector(WrappedSelector):
    """Moves the clock instead of waiting. Only the loop's own pipe is registered here."""

    # Called before each look: moves the clock, and returns how long to wait really.
    waits: Callable[[float | None], float]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._real.select(0) or self._real.select(self.waits(timeout))


class StockLoop(SteppedLoop, Refusing, asyncio.SelectorEventLoop):
    """The stock loop; `seed` distributes `stall` seconds of lateness over the run."""

    virtual = True

    def __init__(self, seed: int = 0, *, stall: float = 0.1) -> None:
        self._random = random.Random(seed)
        # How often it is late, and how slow answers from outside are, differ from run to run.
        self._often = self._random.choice((0.0, 0.05, 0.2, 0.6)) if stall else 0.0
        self._answers = self._random.choice(_ANSWERS)
        self._stall = stall
        self._now = 1024.0
        self._calls = 0
        self._work: list[asyncio.Future[Any]] = []
        self._last: asyncio.Handle | None = None
        selector = _Selector()
        super().__init__(selector)
        selector.waits = self._wait
        self._ready = StepQueue(self._step)
        self._clock_resolution = _FINE if self._often else _COARSE

    # --- the clock -------------------------------------------------------------------------

    def time(self) -> float:
        if sys._getframe(1).f_code is _TIMEOUT:
            self._starts()
        return self._now

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        if delay > 0:
            self._starts()
        return super().call_later(delay, callback, *args, context=context)

    def _starts(self) -> None:
        """A timer starts here: the code before may have been slow."""
        self._be_late()

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        self._calls += 1
        when = round(when, 7) + self._calls * _APART
        return super().call_at(when, callback, *args, context=context)

    def _be_late(self) -> None:
        """Let some of the lateness that is left pass, or none."""
        if self._random.random() < self._often and not self.settling:
            part = self._random.choice((0.05, 0.3, 1.0)) * self._random.random()
            seconds = part * (self._stall - self.lateness)
            self._now += seconds
            self.lateness += seconds

    def answer_time(self) -> float:
        """How long what is outside takes this time."""
        return self._random.choice((0.0, 1.0, self._random.random())) * self._answers

    def _wait(self, timeout: float | None) -> float:
        """Nothing comes from outside, and the loop would wait for `timeout` seconds: move the
        clock. The real seconds to wait for threads."""
        self._after_step()
        self._be_late()
        if self.settling:
            self._skip_to_timer()
            return 0.0
        if timeout == 0:
            return 0.0
        self._work = [future for future in self._work if not future.done()]
        if self._work:
            return _THREAD_TIMEOUT
        self.stepper.pass_instant()
        if not self._ready:
            if timeout is None:
                raise Deadlocked
            self._now += timeout
        return 0.0

    def _skip_to_timer(self) -> None:
        if self.stepper.firing and not self._ready:
            self._now = max([self._now, *sorted(timer.when() for timer in self.timers())[:1]])

    # --- steps -----------------------------------------------------------------------------

    def _step(self, handle: asyncio.Handle) -> None:
        """Before each handle."""
        self._after_step()
        self.stepper.count_steps(1)
        self.stepper.pass_instant()
        self._last = handle

    def _after_step(self) -> None:
        if self._last is None:
            return
        handle, self._last = self._last, None
        self.stepper.end_step(handle)

    def _something_ready(self) -> bool:
        return bool(self._ready or (self.stepper.firing and self.timers()))

    def timers(self) -> list[asyncio.TimerHandle]:
        scheduled: list[asyncio.TimerHandle] = getattr(self, "_scheduled")  # noqa: B009
        return [timer for timer in scheduled if not timer.cancelled()]

    def left_outside(self) -> LeftOver | None:
        return None

    # --- what is not tried here ------------------------------------------------------------

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self._work.append(future)
        return future

    create_connection = _refused("create_connection")
    create_server = _refused("create_server")
    create_unix_connection = _refused("create_unix_connection")
    create_unix_server = _refused("create_unix_server")
    subprocess_exec = _refused("subprocess_exec")
    subprocess_shell = _refused("subprocess_shell")
