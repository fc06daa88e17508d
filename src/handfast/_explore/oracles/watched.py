"""An object whose calls are recorded. For the program it is the object itself."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handfast._explore.oracles.operation import ANYTHING, Operation

if TYPE_CHECKING:
    from handfast._explore.oracles.history import History

# Python looks these up in the class; they are forwarded if the object has them.
_SPECIAL = (
    *("__len__", "__contains__", "__getitem__", "__setitem__", "__delitem__", "__iter__"),
    *("__call__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__aiter__"),
)
# What a block means if the model has no method for it. Its result and its arguments are not compared.
_BLOCKS = {
    **dict.fromkeys(("__enter__", "__aenter__"), "acquire"),
    **dict.fromkeys(("__exit__", "__aexit__"), "release"),
}
_CONTAINERS = (list, dict, set, deque, bytearray)


class Watched:
    """Forwards everything to an object, and records the calls that the model knows."""

    def __init__(self, history: History, real: Any) -> None:
        # Not `self.x = ...`: that is forwarded.
        self.__dict__.update(_handfast_history=history, _handfast_real=real)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["_handfast_real"], name)
        history: History = self.__dict__["_handfast_history"]
        return recorded(history, name, value) if history.knows(name) and callable(value) else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_handfast_real"], name, value)

    def __repr__(self) -> str:
        return repr(self.__dict__["_handfast_real"])


def watched(history: History, real: Any) -> Any:
    """A function that records its calls, or an object that does."""
    if inspect.isroutine(real) or isinstance(real, functools.partial):
        inner: Any = real
        while isinstance(inner, functools.partial):
            inner = inner.func
        name = inner.__name__
        if not history.knows(name):
            raise TypeError(f"the model has no method {name!r}")
        return recorded(history, name, real)
    special = {
        name: _special(name)
        for name in _SPECIAL
        if any(name in vars(base) for base in type(real).__mro__)
    }
    return type("Watched", (Watched,), special)(history, real)


def _special(name: str) -> Callable[..., Any]:
    def forward(self: Watched, *args: Any, **kwargs: Any) -> Any:
        history: History = self.__dict__["_handfast_history"]
        method = getattr(self.__dict__["_handfast_real"], name)
        block = _BLOCKS.get(name)
        if history.knows(name):
            method = recorded(history, name, method)
        elif block is not None and history.knows(block):
            method = recorded(history, block, method, compared=False)
        return method(*args, **kwargs)

    return forward


def recorded(
    history: History, name: str, function: Callable[..., Any], *, compared: bool = True
) -> Callable[..., Any]:
    """The function, with each call recorded as an operation of this name."""

    def named(coroutine: Any) -> Any:
        coroutine.__qualname__ = getattr(function, "__qualname__", name)  # the name of a task
        return coroutine

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        seen = tuple(map(_copied, args)) if compared else ()
        named_seen = {key: _copied(value) for key, value in kwargs.items()} if compared else {}
        begin = functools.partial(history.begin, name, seen, named_seen)
        if inspect.iscoroutinefunction(function):
            return named(_awaited(history, begin, lambda: function(*args, **kwargs), compared))
        began = history.now()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            history.end(begin(began), None, error)
            raise
        if asyncio.isfuture(result):
            operation = begin(began)
            if result.done():
                _ended(history, operation, result, compared)
            else:
                result.add_done_callback(lambda done: _ended(history, operation, done, compared))
            return result
        if inspect.isawaitable(result):
            return named(_awaited(history, begin, lambda: result, compared))
        history.end(begin(began), _result(result, compared), None)
        return result

    return call


async def _awaited(
    history: History, begin: Callable[[], Operation], start: Callable[[], Any], compared: bool
) -> Any:
    # A coroutine does nothing before it is awaited: the operation begins here, in this task. It is
    # not even created before, or Python would warn that one of a cancelled task was never awaited.
    operation = begin()
    try:
        result = await start()
    except BaseException as error:
        history.end(operation, None, error)
        raise
    history.end(operation, _result(result, compared), None)
    return result


def _ended(history: History, operation: Any, done: asyncio.Future[Any], compared: bool) -> None:
    if done.cancelled():
        history.end(operation, None, asyncio.CancelledError())
        return
    # Not `exception()`: that would mark the error as retrieved.
    error = getattr(done, "_exception", None)
    history.end(operation, _result(done.result(), compared) if error is None else None, error)


def _result(result: Any, compared: bool) -> Any:
    return _copied(result) if compared else ANYTHING


def _copied(value: Any) -> Any:
    """A container as it is now: the program may change it later."""
    return copy.copy(value) if type(value) in _CONTAINERS else value
