"""Sets and dicts that a function makes and hands to several others: what one of them does to it, the
others see.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.model.containers import Change, changes, is_hashed_value
from holdfast.check.model.function import Function
from holdfast.check.model.tasks import resolve_function

__all__ = ["taken_by_fellows"]


def taken_by_fellows(function: Function, parameter: str) -> Iterator[Change]:
    """Where what a parameter holds is taken from by another function of the module that was given
    the same set or dict."""
    for caller in function.module.functions:
        for name in _given_for(caller, function, parameter):
            values = caller.assigned.get(name, [])
            if values and all(is_hashed_value(caller.module, each) for each in values):
                yield from _taken_by_others(caller, function, name)


def _given_for(caller: Function, function: Function, parameter: str) -> Iterator[str]:
    """The local names that a caller gives for a parameter."""
    for call in caller.calls:
        if function in resolve_function(caller, call.func):
            yield from (name for given, name in _arguments(call, function) if given == parameter)


def _taken_by_others(caller: Function, function: Function, name: str) -> Iterator[Change]:
    for call in caller.calls:
        for other in resolve_function(caller, call.func):
            theirs = {given for given, own in _arguments(call, other) if own == name}
            if theirs and other is not function:
                for change in changes(other):
                    if change.name in theirs and change.how == "take":
                        yield change


def _arguments(call: ast.Call, callee: Function) -> Iterator[tuple[str, str]]:
    """The parameters of a callee that are given a plain name, each with that name."""
    given = callee.node.args
    plain = [each.arg for each in (*given.posonlyargs, *given.args)]
    if callee.self_name:
        plain = plain[1:]
    for parameter, argument in zip(plain, call.args, strict=False):
        if isinstance(argument, ast.Name):
            yield parameter, argument.id
    for keyword in call.keywords:
        if keyword.arg is not None and isinstance(keyword.value, ast.Name):
            yield keyword.arg, keyword.value.id
