"""Services that are started again when they fail, within limits, as in OTP.

The loop of one service, and the policy that it follows. A service that fails too often gives
up and fails for good: then it is a failure of its scope like any other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.origin import Origin
from holdfast.runtime.durations import seconds
from holdfast.runtime.errors import RestartLimit
from holdfast.runtime.roster import Roster

__all__ = ["Restart", "served"]


@dataclass(frozen=True, slots=True)
class Restart:
    """When to start a service again, how often, and after which pause.

    Parameters:
        when: "failure" (after an error only), "always" (also after it has returned), "never".
        intensity: so many restarts within `period` seconds; one more, and it fails for good.
        period: the window in which restarts are counted.
        backoff: the pause before the first restart in the window; it doubles with each further.
        ceiling: the longest pause.

    >>> Restart(intensity=5, period=60).pause(3)
    0.4
    """

    when: Literal["failure", "always", "never"] = "failure"
    intensity: int = 3
    period: float = 60.0
    backoff: float = 0.1
    ceiling: float = 30.0

    def __post_init__(self) -> None:
        if self.when not in ("failure", "always", "never"):
            raise ValueError(f'when is "failure", "always" or "never", not {self.when!r}')
        if isinstance(self.intensity, bool) or not isinstance(self.intensity, int):
            raise TypeError(f"intensity must be a whole number, not {self.intensity!r}")
        if self.intensity < 0:
            raise ValueError(f"intensity must be zero or more, not {self.intensity!r}")
        for what in ("period", "backoff", "ceiling"):
            seconds(what, getattr(self, what))

    def pause(self, restarts: int) -> float:
        """Seconds to wait before restart number `restarts` (from 1) in the window."""
        # An exponent without bound overflows; the ceiling is reached long before.
        return min(self.ceiling, self.backoff * 2.0 ** min(restarts - 1, 60))


def served(
    roster: Roster,
    function: Callable[[], Awaitable[object]],
    restart: Restart,
    origin: Origin,
) -> Coroutine[Any, Any, None]:
    """The coroutine that runs `function` again and again, as `restart` allows."""
    if asyncio.iscoroutine(function):
        function.close()
    if not callable(function):
        raise TypeError(f"serve() takes an async function, which it calls, not {function!r}")
    return _serve(roster, function, restart, origin)


async def _serve(
    roster: Roster,
    function: Callable[[], Awaitable[object]],
    restart: Restart,
    origin: Origin,
) -> None:
    me = asyncio.current_task()
    assert me is not None
    window = _Window(restart)
    while True:
        failure: BaseException | None = None
        try:
            await function()
        except Exception as error:
            failure = error
        except asyncio.CancelledError as error:
            # Nobody has cancelled the service: it waited for something that was.
            failure = error
        # A service that swallows its cancel, or fails in its clean-up, is not started again.
        over = me.cancelling() or restart.when == "never"
        if over or (failure is None and restart.when == "failure"):
            if failure is not None:
                raise failure
            return
        if not window.admits(roster.clock()):
            raise RestartLimit(
                f"service {me.get_name()!r} ended {window.count + 1} times within "
                f"{restart.period:g} s, and is not started again; its Restart allows "
                f"{restart.intensity}"
            ) from failure
        if failure is not None:
            failure.add_note(
                f"in service {me.get_name()!r} of {roster.describe()}, born at {origin}; "
                f"restart {window.count} of {restart.intensity} follows"
            )
            roster.mention(f"service {me.get_name()!r} failed and is started again", failure)
            del failure  # it refers to this frame
        await asyncio.sleep(restart.pause(window.count))


class _Window:
    """The restarts of the last `period` seconds."""

    def __init__(self, restart: Restart) -> None:
        self._restart = restart
        self._times: deque[float] = deque()

    @property
    def count(self) -> int:
        return len(self._times)

    def admits(self, now: float) -> bool:
        """Whether one more is allowed now; then it is counted."""
        while self._times and self._times[0] <= now - self._restart.period:
            self._times.popleft()
        if self.count >= self._restart.intensity:
            return False
        self._times.append(now)
        return True
