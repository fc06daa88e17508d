"""Checks of the arguments that users pass: each mistake is named where it is made.

All checks use one wording: "spawn() takes a coroutine, not ...; call it: spawn(fn())" for the
wrong type and "limit must be ..., not ..." for the wrong value.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Coroutine
from typing import Any

CLOSE_TIMEOUT = 10.0
"""Seconds that a close may take if the caller sets no timeout."""

# Timers of some loops overflow on larger numbers.
_LONGEST = 365 * 86_400.0


def seconds(what: str, value: float) -> float:
    """`value` as a number of seconds, or a clear error.

    >>> seconds("grace", -1)
    Traceback (most recent call last):
    ValueError: grace must be a number of seconds, zero or more, not -1
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} must be a number of seconds, not {value!r}")
    if math.isnan(value) or value < 0:
        raise ValueError(f"{what} must be a number of seconds, zero or more, not {value!r}")
    return min(float(value), _LONGEST)


def whole_number(what: str, value: int, at_least: int) -> int:
    """`value` as a whole number that is large enough, or a clear error.

    >>> whole_number("limit", 0, at_least=1)
    Traceback (most recent call last):
    ValueError: limit must be at least 1, not 0
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    if value < at_least:
        raise ValueError(f"{what} must be at least {at_least}, not {value!r}")
    return value


def wrong_type(call: str, expected: str, value: object, hint: str = "") -> TypeError:
    """The error for an argument of the wrong type; a coroutine among them is closed.

    >>> wrong_type("spawn", "a coroutine", print)
    TypeError('spawn() takes a coroutine, not <built-in function print>; call it: spawn(fn())')
    """
    if isinstance(value, Coroutine):
        close_unstarted(value)
    elif callable(value) and not hint:
        hint = f"call it: {call}(fn())"
    return TypeError(f"{call}() takes {expected}, not {value!r}" + (f"; {hint}" if hint else ""))


def require_coroutine(call: str, value: object, expected: str = "a coroutine") -> None:
    """Check that `value` is a coroutine that has not started: one that has belongs to others.

    >>> async def work(): ...
    >>> coro = work()
    >>> coro.close()
    >>> require_coroutine("spawn", coro)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: spawn() takes a coroutine that has not started, not <coroutine object work at ...>
    """
    if not isinstance(value, Coroutine):
        raise wrong_type(call, expected, value)
    if is_started(value) or (inspect.iscoroutine(value) and value.cr_frame is None):
        raise RuntimeError(f"{call}() takes a coroutine that has not started, not {value!r}")


def is_started(coro: Any) -> bool:
    """Whether a coroutine is suspended or running now. Not every class of coroutines says so."""
    return bool(getattr(coro, "cr_suspended", False) or getattr(coro, "cr_running", False))


def close_unstarted(coro: Coroutine[Any, Any, Any]) -> None:
    """Close a coroutine that will not run, so that it does not warn that it was never awaited.

    If it runs, other code has started it: closing it would end the work of that code.
    """
    if not is_started(coro):
        coro.close()


def is_async_function(value: object) -> bool:
    """Whether a call of `value` runs nothing by itself, as far as can be seen without a call."""
    call = getattr(type(value), "__call__", None)  # noqa: B004 - the method, not whether it is there
    return any(
        inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        for function in (value, call)
    )


def require_function(form: str, value: object) -> None:
    """Check that `value` is a function, and not a coroutine; `form` is as in "submit(fn, arg)"."""
    if not callable(value):
        call = form.partition("(")[0]
        raise wrong_type(call, "an async function and its arguments", value, f"as in {form}")
