"""HF533: a result is set on a future without a look whether its waiter was cancelled.

Reported: a class keeps futures in an attribute, one method awaits or returns them, and another one calls
`set_result` or `set_exception` on them without a test of `done()` or `cancelled()`. The attribute may hold
tuples or objects with a future each. One that is returned is pedantic, unless the module awaits it. Also
`call_soon_threadsafe(future.set_result, x)` of a future that the function awaits; a function awaits or
returns a future, and a callback inside it, or the object or callback that gets the future, sets it; a
function sets the future in a field of another object (`request.future`); and a handler that sets a future
which its `try` has set before it awaited something else. Pedantic where the waiter removes its future in a
`finally` or a handler: that leaves one step of the loop.
Not reported: where the InvalidStateError is handled, and where the future is shielded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.operations import joined, operations
from handfast._check.model.syntax.ancestors import (
    AnyTry,
    ancestors,
    assignments,
    calls_in,
    enclosing_tries,
    is_in_finally,
    last_name,
)
from handfast._check.model.syntax.function import Function, names_in
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.future_fields import field_settings
from handfast._check.model.tasks.handed_futures import (
    SETTING,
    handed_futures,
    is_future,
    is_withdrawn,
    local_wait,
)
from handfast._check.model.vocabulary import PUTTING_ONE
from handfast._check.rules.rule import Rule, line_of, once_per_place, related, report

_SCHEDULING = {"call_soon", "call_later", "call_at", "call_soon_threadsafe"}
_TESTS = {"done", "cancelled"}
_PUTTING = PUTTING_ONE | {"put", "put_nowait"}


@once_per_place
def check(module: Module) -> Iterator[Finding]:
    yield from _scheduled(module)
    yield from _set_by_others(module)
    yield from _set_in_field(module)
    for function in module.functions:
        yield from _set_twice(function)
    for klass in module.classes.values():
        held = _held_futures(klass)
        for root in sorted(held):
            calls = [each for function in klass.functions for each in _unguarded(function, root)]
            if calls:
                yield from _finding(klass, root, calls)


def _scheduled(module: Module) -> Iterator[Finding]:
    """`call_soon_threadsafe(future.set_result, x)`: nothing tests the future when the loop gets to it."""
    seen: set[ast.Await] = set()
    for function, call in module.calls():
        if last_name(call.func) not in _SCHEDULING or _tests_done(function):
            continue
        for given in call.args[:2]:
            match given:
                case ast.Attribute(ast.Name(name), method) if method in SETTING:
                    wait = _local_wait(function, name)
                    if wait is None or wait in seen or not _may_be_done(function, call, name):
                        continue
                    seen.add(wait)
                    yield report(
                        "HF533",
                        module,
                        given,
                        f"The waiter of `{name}` may have been cancelled at the `await` on line "
                        f"{line_of(wait)}, or another result may have come first; then the future is "
                        "done when the loop calls this, and it raises InvalidStateError: pass a "
                        "function that tests `done()` first",
                        related(module, wait, "awaited here"),
                    )


def _local_wait(function: Function, name: str) -> ast.Await | None:
    """Where the function that creates a future in a local name awaits it, unshielded."""
    where: Function | None = function
    while where is not None and name not in where.assigned:
        where = where.outer
    if where is None or not any(is_future(where, each) for each in where.assigned[name]):
        return None
    return local_wait(where, name)


def _may_be_done(function: Function, call: ast.Call, name: str) -> bool:
    """Whether the future may be done before: by a cancel, if this comes from a thread, or by another
    method that gets the future out of the object. A timer is mostly cancelled together with the wait."""
    if last_name(call.func) == "call_soon_threadsafe":
        return True
    klass = function.klass
    held = {root for root, value in _stores(function) if function.name_of(value) == name}
    return klass is not None and any(
        isinstance(each.func, ast.Attribute)
        and each.func.attr in SETTING
        and not held.isdisjoint(other.roots(each.func.value))
        for other in klass.functions
        for each in other.calls
    )


def _set_by_others(module: Module) -> Iterator[Finding]:
    """A callback or another object sets a future that the function which created it awaits or returns."""
    seen: set[tuple[Function, str]] = set()
    for handed in handed_futures(module):
        key = (handed.creator, handed.name)
        if key in seen or _tests_done(handed.setter) or _is_handled(handed.setter, handed.call):
            continue
        seen.add(key)
        who = "waiter" if isinstance(handed.wait, ast.Await) else "caller that awaits it"
        yield report(
            "HF533",
            module,
            handed.call,
            f"This is the future that `{handed.creator.name}` creates in `{handed.name}`. Its {who} may "
            "have been cancelled before; then the future is done, and this raises InvalidStateError: "
            "test `done()` first",
            related(
                module,
                handed.wait,
                "awaited here" if isinstance(handed.wait, ast.Await) else "returned here",
            ),
            pedantic=is_withdrawn(handed),
            cause="a future that other code sets",
        )


def _set_in_field(module: Module) -> Iterator[Finding]:
    """`request.future.set_result(x)`, where another function awaits the future of the request."""
    seen: set[tuple[Function, str]] = set()
    for field, wait, function, call in field_settings(module):
        if (function, field) in seen or _tests_done(function):
            continue
        if not _is_handled(function, call):
            seen.add((function, field))
            verb = "awaited" if isinstance(wait, ast.Await) else "returned"
            yield report(
                "HF533",
                module,
                call,
                f"The waiter of this future in `{field}` ({verb} on line {line_of(wait)}) may have been "
                "cancelled; then the future is done, and this raises InvalidStateError: test "
                f"`{field}.done()` first",
                related(module, wait, f"{verb} here"),
                cause="a future that other code sets",
            )


def _set_twice(function: Function) -> Iterator[Finding]:
    """`try: f.set_result(x); await more() except Exception as e: f.set_exception(e)`."""
    for call in function.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "set_result":
            continue
        future, step = function.name_of(call.func.value), function.flow.of(call)
        for tried in enclosing_tries(function, call) if future else ():
            if step is None or call.lineno > (tried.body[-1].end_lineno or 0):
                continue
            later = (
                each
                for each in function.flow.nodes
                if each.suspends
                and step is not each
                and isinstance(each.stmt, ast.stmt)
                and call.lineno < each.stmt.lineno <= (tried.body[-1].end_lineno or 0)
                and function.flow.reaches(step, each)
            )
            again = _set_in_handler(function, tried, future)
            if again is not None and (wait := next(later, None)) is not None:
                yield report(
                    "HF533",
                    function.module,
                    again,
                    f"`{future}` has a result since line {line_of(call)} if the error comes from line "
                    f"{line_of(wait.stmt)}, so this raises InvalidStateError, and the error is lost: test "
                    "`done()` first",
                    related(function.module, call, "the result is set here"),
                    related(function.module, wait.stmt, "an error here gets to the handler"),
                )


def _set_in_handler(function: Function, tried: AnyTry, future: str) -> ast.Call | None:
    """The call in a handler that sets the same future again, without a test."""
    if _tests_done(function):
        return None
    for handler in tried.handlers:
        for call in calls_in(handler.body):
            match call.func:
                case ast.Attribute(other, method) if method in SETTING:
                    if function.name_of(other) == future and not _is_handled(function, call):
                        return call
    return None


def _held_futures(klass: Class) -> set[str]:
    """The attributes in which the class keeps futures that it has created, alone or in a container."""
    return {root for function in klass.functions for root, _ in _stores(function)}


@remembered
def _stores(function: Function) -> tuple[tuple[str, ast.expr], ...]:
    """The futures that a function stores in attributes, each with the attribute."""
    return tuple(
        (root, value)
        for node in function.nodes
        if type(node) in _STORING
        for target, value in _stored(node)
        if (root := _own(function, target)) and is_future(function, value)
    )


_STORING = {ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Call}


def _stored(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    yield from assignments(node)
    match node:
        case ast.Call(ast.Attribute(container, method), [*_, value]) if method in _PUTTING:
            yield from ((container, each) for each in _packed(value))


def _packed(value: ast.expr) -> list[ast.expr]:
    """A value, or the parts of a tuple or of a new object: `queue.put((item, future))`."""
    match value:
        case ast.Tuple(parts):
            return parts
        case ast.Call(func, parts, keywords) if last_name(func)[:1].isupper() and (
            parts or keywords
        ):
            return [*parts, *(each.value for each in keywords)]
    return [value]


def _own(function: Function, node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    attr = function.own_attribute(node)
    return f"self.{attr}" if attr else ""


def _unguarded(function: Function, root: str) -> Iterator[ast.Call]:
    """Where a function sets the result of a future in an attribute, without a test, and did not
    create it: then the waiters have had no time to be cancelled."""
    if _tests_done(function) or any(other == root for other, _ in _stores(function)):
        return
    for call in function.calls:
        match call.func:
            case ast.Attribute(future, method) if method in SETTING:
                if root in function.roots(future) and not _is_handled(function, call):
                    yield call


def _finding(klass: Class, root: str, calls: list[ast.Call]) -> Iterator[Finding]:
    held = [(other, wait) for other in klass.functions for wait in _waits(other, root)]
    given = [(other, node) for other in klass.functions for node in _returns(other, root)]
    if held:
        (waiter, wait), what = held[0], "awaits it here"
        cause = f"The waiter of this future in `{root}` may have been cancelled at the `await`"
    elif given:
        (waiter, wait), what = given[0], "returns it here"
        cause = (
            f"A caller may have cancelled this future in `{root}`, which it gets from the `return`"
        )
    else:
        return
    yield report(
        "HF533",
        klass.module,
        calls[0],
        f"{cause} on line {line_of(wait)}; then the future is done, and this raises InvalidStateError: "
        "test `future.done()` first",
        related(klass.module, wait, f"`{waiter.name}` {what}"),
        *(related(klass.module, each, "set here as well") for each in calls[1:]),
        pedantic=any(_removes(other, root) for other, _ in held or given)
        # A caller in another file may shield it.
        or not (held or waiter.name in _awaited_methods(klass.module)),
    )


@remembered
def _awaited_methods(module: Module) -> frozenset[str]:
    """The names of the methods whose results the module awaits: `await client.send(x)`."""
    return frozenset(
        last_name(call.func)
        for function in (module.body, *module.functions)
        for node in function.nodes
        if isinstance(node, ast.Await)
        for call in calls_in([node])
        if not any(last_name(each.func) == "shield" for each in calls_in([node]))
    )


def _tests_done(function: Function) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in _TESTS for node in function.nodes)


def _is_handled(function: Function, call: ast.Call) -> bool:
    return any(
        last_name(kind) in ("InvalidStateError", "Exception", "BaseException")
        for tried in enclosing_tries(function, call)
        for handler in tried.handlers
        for kind in (handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type])
    ) or any(
        isinstance(up, ast.With) and "suppress" in ast.unparse(up.items[0])
        for up in ancestors(function, call)
    )


def _returns(function: Function, root: str) -> Iterator[ast.stmt]:
    """Where a function returns a future that it has stored, to a caller who awaits it."""
    names = _stored_names(function, root)
    for node in function.nodes if names else ():
        match node:
            case ast.Return(ast.Name(name)) if name in names:
                yield node


def _stored_names(function: Function, root: str) -> dict[str, ast.expr]:
    """The local names of the futures that a function stores, each with what is stored."""
    stored = [value for other, value in _stores(function) if other == root]
    names = {name: value for value in stored if (name := function.name_of(value))}
    # `self._waiting[key] = future = create_future()`
    for name, values in function.assigned.items() if stored else ():
        for value in values:
            if any(value is each for each in stored):
                names[name] = value
    return names


def _waits(function: Function, root: str) -> Iterator[ast.stmt | ast.Await]:
    # `f = create_future(); self._waiting.append(f); await f` awaits one of `self._waiting`.
    names = _stored_names(function, root)
    for node in function.nodes:
        if isinstance(node, ast.Await) and (
            root in joined(function, node.value)
            or any(
                function.flow.reaches(function.flow.of(names[name]), function.flow.of(node))
                for name in names_in(node.value)
                if name in names
            )
        ):
            # Also `wait_for(shield(future), 5)`: the timeout does not cancel the future.
            if any(last_name(call.func) == "shield" for call in calls_in([node])):
                continue
            match node.value:
                case ast.Call(func) if last_name(func) == "wait":
                    continue
                case ast.Call(func) if last_name(func).strip("_") not in ("wait_for", "gather"):
                    continue
            yield node


def _removes(function: Function, root: str) -> bool:
    """Whether a function removes it again where a cancellation passes: also `self._waiting[key] = None`."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and any(_own(function, target) == root for target in node.targets)
        and is_in_finally(function, node)
        for node in function.nodes
    ) or any(
        each.root == root
        and each.kind in ("take", "clear")
        and (
            is_in_finally(function, each.node)
            or any(isinstance(up, ast.ExceptHandler) for up in ancestors(function, each.node))
        )
        for each in operations(function)
    )


RULE = Rule(
    "HF533", check, needs=("set_result|set_exception", "create_future|Future|set_exception")
)
