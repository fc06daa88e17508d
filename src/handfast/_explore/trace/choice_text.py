"""Text for the choices of a schedule: what the loop did that it does not do in a normal run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from handfast._explore.loop.external_events import Event
from handfast._explore.loop.task_table import describe

# Callbacks with which asyncio ends a wait, by the function that the program called.
_PUBLIC_NAMES = {
    "_set_result_unless_cancelled": "sleep()",
    "_release_waiter": "a time-out",
    "Timeout._on_timeout": "timeout()",
}


def milliseconds(seconds: float) -> str:
    """A duration as text, such as `10 ms`."""
    return f"{round(seconds * 1000, 3):g} ms"


def counted(number: int, noun: str) -> str:
    """A number of things as text, such as `1 schedule` or `2,000 schedules`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def timers_fired(timers: Sequence[Any], count: int, due: int, late: float) -> str:
    """The first `count` timers fired in one iteration of the loop, and `due` of them were due."""
    if count < due:
        names = _names(timers[count:due])
        return f"the loop read the clock just before it was time: {names} fired one iteration later"
    names = _names(timers[due:count])
    order = "first"
    if due:
        order = f"together with the {'one that was' if due == 1 else f'{due} that were'} due"
    return f"the loop was {milliseconds(late)} late: {names} fired {order}"


def timer_delayed(timers: Sequence[Any], early: int, late: int) -> str:
    """A timer was started so late that one which was started after it fires first."""
    first, second = _timer_name(timers[late]), _timer_name(timers[early])
    return f"timer {second} was started late: timer {first} fired first"


def arrived(event: Event | None, fault: str) -> str:
    """What arrived from outside; None: nothing, although something could have."""
    if event is None:
        return "no external event has arrived yet"
    return f"{fault} instead of {event.label}" if fault else f"happens now: {event.label}"


def running_name(loop: asyncio.AbstractEventLoop) -> str:
    """The name of the task that runs now."""
    task = asyncio.current_task(loop)
    return "the code" if task is None else _short(describe(task))


def _names(timers: Sequence[Any]) -> str:
    # Tasks of one coroutine have one name; naming it twice says nothing.
    names = list(dict.fromkeys(_timer_name(timer) for timer in timers))
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"timer {', '.join(names[:2])}{more}"


def _timer_name(timer: Any) -> str:
    callback = timer._callback
    name = getattr(callback, "__qualname__", None) or type(callback).__name__
    task = _waiting_task(timer)
    owner = "" if task is None else f" of {_short(describe(task))}"
    return f"{_PUBLIC_NAMES.get(name) or _short(name)}{owner}"


def _waiting_task(timer: Any) -> asyncio.Task[Any] | None:
    """The task that waits for this timer, if it can be found."""
    owner = getattr(timer._callback, "__self__", None)
    if isinstance(owner, asyncio.Timeout):
        return getattr(owner, "_task", None)
    # `call_later(delay, set_result, future)`: the task that waits is in the callbacks of the future.
    future = timer._args[0] if timer._args else None
    if asyncio.isfuture(future):
        for callback, _ in getattr(future, "_callbacks", None) or ():
            task = getattr(callback, "__self__", None)
            if isinstance(task, asyncio.Task):
                return task
    return None


def _short(name: str) -> str:
    return name.rpartition("<locals>.")[2]
