"""The stock loop as it is published, on a virtual clock that runs late at random.

The order of handles is `BaseEventLoop._run_once`'s own; only the clock, and with it how late the
code and the timers are, is made here, from a seed. What the explorer finds in the models
`latency` and `wild` is tried on it: a finding that shows here too is realised.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.explore.plan import Cancel, Plan, Record, Settings
from holdfast.explore.refusals import Refusing, Uncontrolled
from holdfast.explore.stepping import Deadlocked, LeftOver, Livelocked, Stepping

if TYPE_CHECKING:
    from holdfast.explore.run import Program
    from holdfast.explore.verdicts import Verdict

__all__ = ["StockLoop", "realised"]

# On a real clock the later of two calls has the later deadline, be it by this much.
_APART = 1e-11
# A clock this coarse takes such timers for one moment; a finer one tells them apart.
_COARSE, _FINE = 1e-4, 1e-12
# Reads the clock to start a timer.
_TIMEOUT: Any = asyncio.timeout.__code__
# How long what is outside takes, in seconds; one of these for a run.
_ANSWERS = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)
# Real seconds for a thread to hand something over.
_PATIENCE = 5.0


def _refused(name: str) -> Any:
    def refuse(self: Refusing, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse(f"loop.{name}", "the stock loop with delays has no outside")

    refuse.__name__ = name
    return refuse


class _Selector(selectors.BaseSelector):
    """Moves the clock instead of waiting. Only the loop's own pipe is registered here."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        # Called before each look: moves the clock, and says how long to wait really.
        self.waits: Callable[[float | None], float] = lambda timeout: 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return self._real.select(0) or self._real.select(self.waits(timeout))

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class _Ready(deque[asyncio.Handle]):
    """The loop's own queue; taking a handle out of it is one step."""

    def __init__(self, step: Callable[[asyncio.Handle], None]) -> None:
        super().__init__()
        self._step = step

    def popleft(self) -> asyncio.Handle:
        self._step(self[0])
        return super().popleft()


class StockLoop(Stepping, Refusing, asyncio.SelectorEventLoop):
    """The published loop; `stall` seconds of lateness are strewn over the run by `seed`."""

    virtual = True
    lateness = 0.0

    def __init__(self, seed: int = 0, *, stall: float = 0.1) -> None:
        self._lot = random.Random(seed)
        # How readily it is late, and how slow what is outside answers, differ from run to run.
        self._often = self._lot.choice((0.0, 0.05, 0.2, 0.6)) if stall else 0.0
        self._answers = self._lot.choice(_ANSWERS)
        self._stall = stall
        self._now = 1024.0
        self._calls = 0
        self._work: list[asyncio.Future[Any]] = []
        self._last: asyncio.Handle | None = None
        selector = _Selector()
        super().__init__(selector)
        selector.waits = self._wait
        self._ready = _Ready(self._step)
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
        self._dawdle()

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        self._calls += 1
        when = round(when, 7) + self._calls * _APART
        return super().call_at(when, callback, *args, context=context)

    def _dawdle(self) -> None:
        """Let some of the lateness that is left pass, or none."""
        if self._lot.random() < self._often and not self.settling:
            part = self._lot.choice((0.05, 0.3, 1.0)) * self._lot.random()
            seconds = part * (self._stall - self.lateness)
            self._now += seconds
            self.lateness += seconds

    def answer_time(self) -> float:
        """How long what is outside takes this time."""
        return self._lot.choice((0.0, 1.0, self._lot.random())) * self._answers

    def _wait(self, timeout: float | None) -> float:
        """Nothing comes from outside, and the loop would wait for `timeout` seconds: move the
        clock. The real seconds to wait for threads."""
        self._after_step()
        self._dawdle()
        if self.settling:
            self._skip_to_timer()
            return 0.0
        if timeout == 0:
            return 0.0
        self._work = [future for future in self._work if not future.done()]
        if self._work:
            return _PATIENCE
        self._pause()
        if not self._ready:
            if timeout is None:
                raise Deadlocked
            self._now += timeout
        return 0.0

    def _skip_to_timer(self) -> None:
        if self.firing and not self._ready:
            self._now = max([self._now, *sorted(timer.when() for timer in self.timers())[:1]])

    # --- steps -----------------------------------------------------------------------------

    def _step(self, handle: asyncio.Handle) -> None:
        """Before each handle: what Stepping does between two of them."""
        self._after_step()
        self.steps += 1
        if self.steps > self.settings.step_limit and not self.settling:
            raise Livelocked
        if self.instant >= self._quiet_until:
            self._between()
        self.instant += 1
        self._last = handle

    def _after_step(self) -> None:
        if self._last is None:
            return
        handle, self._last = self._last, None
        if self._struck:
            self._see_whether_it_goes_on(handle)
        if self._invariant is not None and not self.settling:
            self._check_invariant(self._invariant)

    def _something_ready(self) -> bool:
        return bool(self._ready or (self.firing and self.timers()))

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


def realised(
    program: Program,
    verdict: Verdict,
    settings: Settings,
    *,
    tries: int = 200,
    seed: int = 0,
    invariant: Callable[[], object] | None = None,
) -> bool:
    """Whether the bug of `verdict` also shows on the stock loop with delays, within `tries` runs.
    The same seed gives the same answer."""
    from holdfast.explore.run import run

    lot = random.Random(seed)
    cancels: tuple[Cancel, ...] = ()
    for _ in range(tries):
        loop = StockLoop(lot.getrandbits(32), stall=settings.stall)
        plan = Plan(cancels=cancels)
        try:
            record = run(program, plan, settings, invariant=invariant, loop=loop)
        except Uncontrolled:
            return False  # it needs an outside that only the explorer has
        if verdict.same_bug(record.verdict):
            return True
        cancels = _some_cancels(lot, loop, record, settings)
    return False


def _some_cancels(
    lot: random.Random, loop: StockLoop, record: Record, settings: Settings
) -> tuple[Cancel, ...]:
    """Whom to cancel next, and when: anybody who may be, at any instant of the last run."""
    if settings.cancel == "no":
        return ()
    whom = [0] if settings.cancel == "main" else loop.victims or range(1, len(loop.tasks))
    if not whom:
        return ()
    task = lot.choice(whom)
    times = 2 if settings.cancel == "double" else 1
    return tuple(Cancel(lot.randrange(record.instants + 1), task) for _ in range(times))
