"""HF311: `self.x` is looked at, then something is awaited, then `self.x` is used.

Found where a coroutine looks at an attribute, can suspend, and then asks the attribute for
something without having looked again, while a close method, a callback or a task of the same class
sets it to None. Silent where the same lock is held by both, where what is awaited looks or stores
again, where the use handles the error on the spot, where it runs in a task that was ended before,
and in close methods. Pedantic where only the leaving of a context (`__aexit__`) clears it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.deeds import Deed, deeds
from holdfast.check.model.effects import callers, effects, members, runs
from holdfast.check.model.flow import Node, suspends, walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.guards import is_looked_at, is_presence_test, locks_over, looks
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class, Module
from holdfast.check.model.roles import is_close_name, run_in, task_bodies
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_TIMEOUT = re.compile(r"(\w+\.)?(asyncio_|async_)?timeout(_at)?")
_ENDING = re.compile(r"\w*(close|stop|disconnect|lost|shutdown|teardown|kill|cleanup|terminate)\w*")


def check(module: Module) -> Iterator[Finding]:
    seen: set[ast.AST] = set()
    for klass in module.classes.values():
        # A look comes first: without one, neither deeds nor other files have to be known.
        here = [each for part in klass.near for each in part.functions if _looks_first(each)]
        functions = list(members(klass)) if here else []
        clears = _clears(functions)
        for function in functions if clears else ():
            if function not in here:
                continue
            for clear in _clears_of_others(klass, function, clears):
                stale = _stale(klass, function, clear.root, clear)
                if stale is not None and stale[1].node not in seen:
                    seen.add(stale[1].node)
                    yield _finding(klass, stale[0], stale[1], clear)


@remembered
def _looks_first(function: Function) -> bool:
    """Whether a coroutine that is there to go on tests an attribute of its object."""
    if not function.is_async or is_close_name(function.name):
        return False
    return any(
        isinstance(node, (ast.If, ast.While)) and _names_own(function, node.test)
        for node in function.nodes
    )


def _names_own(function: Function, test: ast.expr) -> bool:
    """Whether a test has an attribute of `self` in it."""
    return any(
        isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and each.value.id == function.self_here
        for each in walk_here(test)
    )


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
    if _is_ended_before(klass, function, clear):
        return None
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
            if test.step is not None and _waits_between(test.step, step, seen):
                return test, use
    return None


def _is_ended_before(klass: Class, function: Function, clear: Deed) -> bool:
    """Whether all of it runs in a task that was cancelled or joined before the clearing: at the next
    `await` it is over."""
    method, step = clear.function, clear.step
    if step is None or any(True for _ in callers(klass, function)):
        return False
    over = {
        effect.root
        for effect in effects(method, klass)
        if effect.kind in ("cancel", "join")
        and effect.step is not None
        and effect.step is not step
        and method.flow.reaches(effect.step, step)
    }
    return function in run_in(klass, over)


def _waits_between(start: Node, goal: Node, seen: set[Node]) -> bool:
    """Whether the function can suspend after `start` and before `goal`, with no look between."""
    known: set[tuple[Node, bool]] = set()
    todo = [(node, False) for node in start.out()]
    while todo:
        state = todo.pop()
        if state in known:
            continue
        known.add(state)
        node, waited = state
        if node is goal and waited:
            return True
        if node not in seen:
            waits = waited or (node.suspends and not _is_timeout(node.stmt))
            todo += [(each, waits) for each in node.out()]
    return False


def _is_timeout(stmt: ast.AST) -> bool:
    """Whether an `async with` holds time-outs only: those are entered and left at once."""
    return isinstance(stmt, ast.AsyncWith) and all(
        isinstance(item.context_expr, ast.Call)
        and _TIMEOUT.fullmatch(ast.unparse(item.context_expr.func))
        and not suspends(item.context_expr)
        for item in stmt.items
    )


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
            if any(each.type is None or _takes_it([each.type]) for each in up.handlers):
                return True
        if isinstance(up, ast.With):
            for item in up.items:
                match item.context_expr:
                    case ast.Call(ast.Attribute(attr="suppress") | ast.Name("suppress"), kinds):
                        if _takes_it(kinds):
                            return True
        below, up = up, parents.get(up)
    return False


def _takes_it(kinds: list[ast.expr]) -> bool:
    names = {getattr(each, "id", "") for kind in kinds for each in ast.walk(kind)}
    return bool(names & {"Exception", "BaseException", "AttributeError"})


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
