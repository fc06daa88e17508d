"""HF311: `self.x` is checked, then something is awaited, then `self.x` is used.

Reported: a coroutine checks an attribute, can suspend, and then uses the attribute without another
check, while a close method, a callback or a task of the same class sets it to None. Pedantic where
only `__aexit__` clears it: code that uses an object after its `async with` has other problems; and where
only an `async with` of the attribute itself is between: few of those suspend when they are entered; and in
a method that sets the object up, which is rarely closed meanwhile.
Also `if key in self.x`, an `await`, and then `del self.x[key]` or `pop(key)`, which raises if another
method has removed the entry; pedantic if no other method removes any.
Not reported: where both hold the same lock, where the awaited function checks or stores again, where
the error is handled there, where the use runs in a task that was ended before, and in close methods.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import partial

from handfast._check.finding import Finding
from handfast._check.model.operations.effects import effects
from handfast._check.model.operations.guards import (
    is_checked_inline,
    is_guard,
    is_serial,
    presence_checks,
)
from handfast._check.model.operations.locks import locks_over
from handfast._check.model.operations.operations import Operation, operations
from handfast._check.model.syntax.ancestors import ancestors, enclosing_tries, last_name
from handfast._check.model.syntax.call_graph import callers, members, runs
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.control_flow import Step, suspends
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.creation import task_bodies
from handfast._check.model.tasks.method_roles import is_close_name
from handfast._check.model.tasks.owned import run_in
from handfast._check.rules.rule import (
    CREATING,
    Rule,
    line_of,
    once_per_place,
    related,
    related_in,
    report,
)

_TIMEOUT = re.compile(r"(\w+\.)?(asyncio_|async_)?timeout(_at)?")
_ENDING = re.compile(r"\w*(close|stop|disconnect|lost|shutdown|teardown|kill|cleanup|terminate)\w*")
_SETTING_UP = re.compile(r"_*(async_)?(setup|set_up|init|initialize)(_\w+)?")


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    for klass in module.classes.values():
        # Without a check there is no finding, so it is tested before other files are read.
        here = [each for part in klass.classes_in_file for each in part.functions]
        here = [each for each in here if _has_check(each)]
        functions = members(klass) if here else ()
        clears = _clears(functions)
        for function in functions if clears else ():
            for clear in _clears_of_others(klass, function, clears) if function in here else ():
                stale = _stale(klass, function, clear.root, clear)
                if stale is not None:
                    yield _finding(klass, *stale, clear)
        for function in klass.functions if " in self." in module.source.text else ():
            if function.is_async and not is_close_name(function.name):
                yield from _entries(klass, function)


@remembered
def _has_check(function: Function) -> bool:
    """Whether a coroutine other than a close method tests an attribute of its object."""
    if not function.is_async or is_close_name(function.name):
        return False
    return any(
        isinstance(node, (ast.If, ast.While)) and _names_own(function, node.test)
        for node in function.nodes
    )


def _names_own(function: Function, test: ast.expr) -> bool:
    """Whether a test has an attribute of `self` in it."""
    return any(map(function.own_attribute, walk_here(test)))


def _clears(functions: Iterable[Function]) -> list[Operation]:
    """Where a function that ends something sets an attribute to None."""
    return [
        operation
        for function in functions
        if _ends_things(function)
        for operation in operations(function)
        if operation.kind == "clear" and operation.sets_none
    ]


def _clears_of_others(klass: Class, function: Function, clears: list[Operation]) -> list[Operation]:
    """Those that the function does not itself run, those of a context manager last."""
    used = {operation.root for operation in operations(function) if operation.kind == "use"}
    mine = [each for each in clears if each.root in used]
    own = {each for each, _ in runs(function, klass)} if mine else set()
    return sorted(
        (each for each in mine if each.function not in own),
        key=lambda each: _is_of_context(klass, each.function),
    )


def _is_of_context(klass: Class, function: Function) -> bool:
    """Whether only the context manager methods of the class run it."""
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


def _stale(
    klass: Class, function: Function, root: str, clear: Operation
) -> tuple[Operation, Operation, bool] | None:
    """A check and a use that a suspension can separate, and whether it surely suspends there."""
    if klass not in (function.klass, clear.function.klass):
        return None  # reported for the base class
    if _is_ended_before(klass, function, clear):
        return None
    own = [each for each in operations(function) if each.root == root]
    own = [each for each in own if each.kind in ("read", "use")]
    tests = [each for each in own if is_guard(each, ast.If, ast.While)]
    if not tests or len(own) == len(tests):
        return None
    checks = presence_checks(function, root, klass)
    found = None
    for use in own:
        step = use.step
        if use.kind != "use" or step is None or step in checks:
            continue
        if is_checked_inline(function, use.node, root) or _is_locked(klass, use, clear):
            continue
        for test in tests if not _is_caught(use) else ():
            for sure in (True, False):
                suspends_there = partial(_lets_others_run, function, root, sure)
                if function.flow.suspends_between(test.step, step, checks, suspends_there):
                    if sure:
                        return test, use, True
                    found = found or (test, use, False)
    return found


def _lets_others_run(function: Function, root: str, sure: bool, step: Step) -> bool:
    if not step.suspends or _is_timeout(step.stmt):
        return False
    match step.stmt:
        case ast.AsyncWith(items) if sure and not any(suspends(each) for each in items):
            names = ([*map(function.name_of, _attributes_in(each.context_expr))] for each in items)
            return not all(root in each for each in names)
    return True


def _attributes_in(node: ast.expr) -> Iterator[ast.Attribute]:
    return (each for each in walk_here(node) if isinstance(each, ast.Attribute))


def _is_ended_before(klass: Class, function: Function, clear: Operation) -> bool:
    """Whether the function only runs in a task that was cancelled or joined before the clearing: the
    task ends at its next `await`."""
    method, step = clear.function, clear.step
    if step is None or any(True for _ in callers(klass, function)):
        return False
    ended = {
        effect.root
        for effect in effects(method, klass)
        if effect.kind in ("cancel", "join")
        and effect.step is not step
        and method.flow.reaches(effect.step, step)
    }
    return function in run_in(klass, ended)


def _is_timeout(stmt: ast.AST) -> bool:
    """Whether an `async with` has only timeouts: entering and leaving those does not suspend."""
    return isinstance(stmt, ast.AsyncWith) and all(
        isinstance(item.context_expr, ast.Call)
        and _TIMEOUT.fullmatch(ast.unparse(item.context_expr.func))
        and not suspends(item.context_expr)
        for item in stmt.items
    )


def _is_caught(use: Operation) -> bool:
    """Whether an `AttributeError` there is handled in the same function."""
    for around in enclosing_tries(use.function, use.node):
        if any(each.type is None or _catches_it([each.type]) for each in around.handlers):
            return True
    for up in ancestors(use.function, use.node):
        if isinstance(up, ast.With):
            for item in up.items:
                match item.context_expr:
                    case ast.Call(ast.Attribute(attr="suppress") | ast.Name("suppress"), kinds):
                        if _catches_it(kinds):
                            return True
    return False


def _catches_it(kinds: list[ast.expr]) -> bool:
    names = {getattr(each, "id", "") for kind in kinds for each in ast.walk(kind)}
    return bool(names & {"Exception", "BaseException", "AttributeError"})


def _is_locked(klass: Class, use: Operation, clear: Operation) -> bool:
    return bool(
        locks_over(klass, use.function, use.node) & locks_over(klass, clear.function, clear.node)
    )


def _finding(
    klass: Class, test: Operation, use: Operation, sure: bool, clear: Operation
) -> Finding:
    module, root = use.function.module, use.root
    return report(
        "HF311",
        module,
        use.node,
        f"`{root}` was checked on line {line_of(test.node)}, before an `await`, and "
        f"`{clear.function.qualname}` may have cleared it since (line {line_of(clear.node)}): check "
        "after the last `await`, and use a local name",
        related(module, test.node, "checked here"),
        related(clear.function.module, clear.node, "cleared here"),
        pedantic=not sure
        or _is_of_context(klass, clear.function)
        or (is_close_name(clear.function.name) and _sets_up(use.function)),
    )


def _sets_up(function: Function) -> bool:
    return _SETTING_UP.fullmatch(function.name) is not None


# --- the entry of a key ---------------------------------------------------------------------------


def _entries(klass: Class, function: Function) -> Iterator[Finding]:
    """`if key in self.x`, an `await`, and then `del self.x[key]`, which raises if the entry is gone."""
    for node in function.nodes:
        taken = _taken(function, node) if type(node) in _TAKING else None
        if taken is None or _is_handled(function, node):
            continue
        flow, goal = function.flow, function.flow.of(node)
        tests, stores = _tests_and_stores(function, *taken)
        absent = [each for test in tests for each in _without_entry(function, test)]
        between = {flow.of(each) for each in (*tests, *stores, *absent)}
        if goal in between or locks_over(klass, function, node) or is_serial(klass, function):
            continue
        for test in tests:
            if flow.suspends_between(flow.of(test), goal, between):
                yield _gone(klass, function, test, node, taken[0])
                break


def _gone(klass: Class, function: Function, test: ast.AST, node: ast.AST, root: str) -> Finding:
    module = function.module
    other = _other_taker(klass, function, root)
    return report(
        "HF311",
        module,
        node,
        f"`{root}` was tested for this key on line {line_of(test)}, before an `await`, and if "
        f"`{other.function.qualname if other else function.qualname}` has removed the entry since, this "
        "raises: remove it before the `await`, or with `pop(key, None)`",
        related(module, test, "tested here"),
        related_in(module, other.function.module, other.node, "this may remove it")
        if other
        else None,
        # That two callers have the same key is likely only if another method removes it as well.
        pedantic=other is None,
    )


_TAKING = {ast.Delete, ast.Call}
_MISSING = {"KeyError", "ValueError", "LookupError", "Exception", "BaseException"}


def _taken(function: Function, node: ast.AST) -> tuple[str, str] | None:
    """The attribute from which a node removes an entry that must be there, and the key."""
    match node:
        case ast.Delete([ast.Subscript(container, key)]):
            pass
        case ast.Call(ast.Attribute(container, "pop" | "remove"), [key], []):
            pass
        case _:
            return None
    attr = function.own_attribute(container)
    return (f"self.{attr}", ast.unparse(key)) if attr else None


def _tests_and_stores(
    function: Function, root: str, key: str
) -> tuple[list[ast.AST], list[ast.AST]]:
    """Where a function tests a container for the key, and where it adds to the container."""
    tests: list[ast.AST] = []
    for node in function.nodes:
        match node:
            case ast.Compare(left, [ast.In() | ast.NotIn()], [container]):
                if function.name_of(container) == root and ast.unparse(left) == key:
                    tests.append(node)
    stores = [each.node for each in operations(function) if (each.kind, each.root) == ("put", root)]
    return tests, stores


def _without_entry(function: Function, test: ast.AST) -> Iterator[ast.stmt]:
    """The first statement of the branch without the key: `if key not in self.x: await context.abort()`.
    A path through it removes nothing that was there."""
    up = function.module.parents.get(test)
    if isinstance(test, ast.Compare) and isinstance(up, ast.If) and up.test is test:
        yield from (up.body if isinstance(test.ops[0], ast.NotIn) else up.orelse)[:1]


def _is_handled(function: Function, node: ast.AST) -> bool:
    """Whether the error of an entry that is gone is handled in the same function."""
    handlers = (each for tried in enclosing_tries(function, node) for each in tried.handlers)
    if any(each.type is None or _names_in(each.type) & _MISSING for each in handlers):
        return True
    return any(
        isinstance(item.context_expr, ast.Call) and _names_in(item.context_expr) & _MISSING
        for up in ancestors(function, node)
        if isinstance(up, ast.With)
        for item in up.items
    )


def _names_in(node: ast.AST) -> set[str]:
    return {last_name(each) for each in ast.walk(node)}


def _other_taker(klass: Class, function: Function, root: str) -> Operation | None:
    """Where another method, other than a close method, removes an entry by a key."""
    for each in members(klass):
        if each is not function and not is_close_name(each.name):
            for operation in operations(each):
                if operation.root == root and operation.kind == "take":
                    return operation
    return None


RULE = Rule(
    "HF311",
    check,
    needs=(
        "None|del |.pop(|.remove(",
        "if |while ",
        "await|async with|async for",
        f"<closing>|<clearing>|{CREATING}|<entries>",
    ),
)
