"""HF311: `self.x` is looked at, then something is awaited, then `self.x` is used.

Found where a coroutine looks at an attribute, can suspend, and then asks the attribute for
something without having looked again, while a close method, a callback or a task of the same class
sets it to None. Silent where the same lock is held by both, where what is awaited looks or stores
again, where the use handles the error on the spot, and in close methods. Pedantic where only the
leaving of a context (`__aexit__`) clears it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.deeds import Deed, deeds
from holdfast.check.model.effects import callers, members, runs
from holdfast.check.model.function import Function
from holdfast.check.model.guards import is_looked_at, is_presence_test, locks_over, looks
from holdfast.check.model.module import Class, Module
from holdfast.check.model.roles import is_close_name, task_bodies
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_ENDING = re.compile(r"\w*(close|stop|disconnect|lost|shutdown|teardown|kill|cleanup|terminate)\w*")


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for klass in module.classes.values():
        functions = list(members(klass))
        clears = _clears(functions)
        for function in functions if clears else ():
            if function.module is not module or not function.is_async:
                continue
            if is_close_name(function.name):
                continue
            for clear in _clears_of_others(klass, function, clears):
                stale = _stale(klass, function, clear.root, clear)
                if stale is not None and stale[1].node not in seen:
                    seen.add(stale[1].node)
                    yield _finding(klass, stale[0], stale[1], clear)


def _clears(functions: list[Function]) -> list[Deed]:
    """Where somebody who ends things sets an attribute to None."""
    return [
        deed
        for function in functions
        if _ends_things(function)
        for deed in deeds(function)
        if deed.kind == "clear" and _is_to_none(deed)
    ]


def _clears_of_others(klass: Class, function: Function, clears: list[Deed]) -> list[Deed]:
    """Those that the function does not itself run, the leaving of a context last."""
    used = {deed.root for deed in deeds(function) if deed.kind == "use"}
    mine = [each for each in clears if each.root in used]
    own = {each for each, _ in runs(function, klass)} if mine else set()
    return sorted(
        (each for each in mine if each.function not in own),
        key=lambda each: _is_of_context(klass, each.function),
    )


def _is_of_context(klass: Class, function: Function) -> bool:
    """Whether only the entering or leaving of a context runs it: who uses an object then has other
    troubles."""
    if not function.name.startswith("_") or function.name.startswith("__"):
        return function.name.startswith("__")
    above = [each for each, _ in callers(klass, function)]
    return bool(above) and all(each.name.startswith("__") for each in above)


def _ends_things(function: Function) -> bool:
    return (
        is_close_name(function.name)
        or _ENDING.fullmatch(function.name) is not None
        or function in task_bodies(function.module)
    )


def _is_to_none(deed: Deed) -> bool:
    match deed.node:
        case ast.Call():
            return False
        case ast.Assign(_, value):
            return not isinstance(value, (ast.Dict, ast.List, ast.Call))
    return True


def _stale(klass: Class, function: Function, root: str, clear: Deed) -> tuple[Deed, Deed] | None:
    """A look and a use that a suspension can separate."""
    if klass not in (function.klass, clear.function.klass):
        return None  # what a base does all by itself is said of the base
    mine = [deed for deed in deeds(function) if deed.root == root and deed.kind in ("read", "use")]
    tests = [deed for deed in mine if _is_guard(deed)]
    if not tests or len(mine) == len(tests):
        return None
    seen = looks(function, root, klass)
    for use in mine:
        step = use.step
        if use.kind != "use" or step is None or step in seen:
            continue
        if (
            is_looked_at(function, use.node, root)
            or _is_locked(klass, use, clear)
            or _is_caught(use)
        ):
            continue
        for test in tests:
            if test.step is not None and function.flow.suspends_between(
                test.step, step, lambda node: node in seen
            ):
                return test, use
    return None


def _is_guard(deed: Deed) -> bool:
    step = deed.step
    return (
        step is not None
        and isinstance(step.stmt, (ast.If, ast.While))
        and is_presence_test(deed.function, step.stmt.test, deed.root)
    )


def _is_caught(use: Deed) -> bool:
    """Whether an `AttributeError` there is handled on the spot."""
    parents = use.function.module.parents
    below, up = use.node, parents.get(use.node)
    while up is not None and up is not use.function.node:
        if isinstance(up, ast.Try) and below in up.body:
            for handler in up.handlers:
                kinds = ast.walk(handler.type) if handler.type is not None else ()
                names = {getattr(each, "id", "") for each in kinds}
                if handler.type is None or names & {"Exception", "BaseException", "AttributeError"}:
                    return True
        below, up = up, parents.get(up)
    return False


def _is_locked(klass: Class, use: Deed, clear: Deed) -> bool:
    return bool(
        locks_over(klass, use.function, use.node) & locks_over(klass, clear.function, clear.node)
    )


def _finding(klass: Class, test: Deed, use: Deed, clear: Deed) -> Finding:
    module, root = use.function.module, use.root
    return found(
        "HF311",
        module,
        use.node,
        f"`{root}` was looked at on line {getattr(test.node, 'lineno', 0)}, and an `await` stands "
        f"between: `{clear.function.qualname}` may have cleared it (line "
        f"{getattr(clear.node, 'lineno', 0)}); look after the last `await`, and use a local name",
        related(module, test.node, "the look"),
        related(clear.function.module, clear.node, "cleared here"),
        pedantic=_is_of_context(klass, clear.function),
    )


RULE = Rule("HF311", check)
