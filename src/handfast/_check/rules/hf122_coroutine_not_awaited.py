"""HF122: a coroutine function is called, and the coroutine is never awaited, so its body does not run.

Reported: a call of a coroutine function of the project, or of asyncio itself, whose value is dropped,
kept in a local name that is never read, or tested for truth: a coroutine is always true. Also a
coroutine function that is passed as a callback to what calls it and drops the result: `call_later`,
`add_signal_handler`, `add_done_callback`, a thread.
Not reported: decorated functions, whose decorator may return something else; names that are assigned
or defined in several ways; calls in a `with` of pytest, which expects an error or a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.guards import tests_around
from handfast._check.model.syntax.ancestors import ancestors, last_name
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import is_loop
from handfast._check.model.vocabulary import CALLING_BACK
from handfast._check.rules.rule import Rule, related_in, report

_CODE = "HF122"
_OF_ASYNCIO = {
    f"asyncio.{name}"
    for name in (
        "sleep", "wait_for", "wait", "to_thread", "open_connection", "start_server",
        "create_subprocess_exec", "create_subprocess_shell",
    )
}  # fmt: skip
_TAKING = {*CALLING_BACK, "Thread"}
_EXPECTING = {
    "raises",
    "warns",
    "assertRaises",
    "assertWarns",
    "assertRaisesRegex",
    "catch_warnings",
}


def check(module: Module) -> Iterator[Finding]:
    for function in (module.body, *module.functions):
        for node in function.nodes:
            if type(node) in _WASTING:
                for call, fate in _wasted(function, node):
                    yield from _finding(function, call, fate)
            elif type(node) is ast.Call and last_name(node.func) in _TAKING:
                yield from _passed(function, node)


def _finding(function: Function, call: ast.Call, fate: str) -> Iterator[Finding]:
    callee = _coroutine_function(function, call.func)
    name = callee.name if callee is not None else function.name_of(call.func)
    if (callee is not None or name in _OF_ASYNCIO) and not _is_expected(function, call):
        module = function.module
        yield report(
            _CODE,
            module,
            call,
            f"`{name}` is a coroutine function, and the coroutine that this call returns is {fate}: "
            f"nothing of `{name}` runs; await it",
            related_in(module, callee.module, callee.node, "the coroutine function")
            if callee is not None
            else None,
        )


def _passed(function: Function, call: ast.Call) -> Iterator[Finding]:
    """A coroutine function that is passed as a plain callback."""
    given = _callback(function, call)
    match given:
        case ast.Call(func, [first, *_]) if function.last_name_of(func) == "partial":
            given = first
        case ast.Lambda(body=ast.Call(func)):
            given = func
    if given is None:
        return
    callee = _coroutine_function(function, given)
    if callee is not None and not _is_expected(function, call):
        module, taker = function.module, last_name(call.func)
        yield report(
            _CODE,
            module,
            given,
            f"`{callee.name}` is a coroutine function, and `{taker}` calls it and drops the coroutine: "
            f"nothing of `{callee.name}` runs; pass a plain function that creates a task and keeps it",
            related_in(module, callee.module, callee.node, "the coroutine function"),
        )


def _callback(function: Function, call: ast.Call) -> ast.expr | None:
    """The argument that a call calls back, or runs in a thread, without a look at what it returns."""
    taker = last_name(call.func)
    if taker == "Thread":
        return next((each.value for each in call.keywords if each.arg == "target"), None)
    where = CALLING_BACK.get(taker, -1)
    if not 0 <= where < len(call.args) or not isinstance(call.func, ast.Attribute):
        return None
    # The loops of tornado and textual have methods of these names that await what the callback returns.
    unique = taker in ("add_done_callback", "add_signal_handler")
    if not unique and not is_loop(function, call.func.value):
        return None
    return None if "tornado" in function.module.source.text else call.args[where]


# The nodes that `_wasted` handles.
_WASTING = {ast.Expr, ast.If, ast.While, ast.IfExp, ast.Assert, ast.UnaryOp, ast.Assign}


def _wasted(function: Function, node: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """The call whose value a node does not use, or not as a coroutine, and what it does with it."""
    match node:
        case ast.Expr(value):
            yield from ((call, "dropped") for call in _dropped(value))
        case (
            ast.If(ast.Call() as call)
            | ast.While(ast.Call() as call)
            | ast.IfExp(ast.Call() as call)
            | ast.Assert(ast.Call() as call)
            | ast.UnaryOp(ast.Not(), ast.Call() as call)
        ):
            yield call, "only tested, and always true"
        # The test for a coroutine function comes first: it is the cheaper one.
        case ast.Assign([ast.Name(name)], ast.Call() as call):
            if not _coroutine_function(function, call.func):
                return
            if _is_unread(function, name):
                yield call, f"kept in `{name}`, which is not used"
            elif _is_only_tested(function, name):
                yield call, f"kept in `{name}`, which is only tested, and always true"


def _dropped(value: ast.expr) -> Iterator[ast.Call]:
    """The calls whose value a statement drops: `f()`, `x and f()`, `f() if x else None`."""
    match value:
        case ast.Call():
            yield value
        case ast.BoolOp(_, [*_, last]):
            yield from _dropped(last)
        case ast.IfExp(_, one, other):
            yield from _dropped(one)
            yield from _dropped(other)
        case ast.ListComp(ast.Call() as each) | ast.SetComp(ast.Call() as each):
            yield each


def _is_only_tested(function: Function, name: str) -> bool:
    """Whether a local name that is assigned once is only read as a condition."""
    if len(function.assigned.get(name, ())) != 1 or function is function.module.body:
        return False
    parents = function.module.parents
    reads = [node for _, node in function.reads(name)]
    return bool(reads) and all(_is_condition(parents.get(node), node) for node in reads)


def _is_condition(parent: ast.AST | None, node: ast.AST) -> bool:
    match parent:
        case ast.If(test) | ast.While(test) | ast.IfExp(test) | ast.Assert(test):
            return test is node
        case ast.UnaryOp(ast.Not()):
            return True
    return False


def _is_unread(function: Function, name: str) -> bool:
    if function is function.module.body or any(function.reads(name)):
        return False
    return not any(
        isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names
        for node in function.nodes
    )


def _coroutine_function(function: Function, node: ast.expr) -> Function | None:
    """The coroutine function of the project that an expression names, if that is certain."""
    module = function.module
    match node:
        case ast.Name(name) if name in _coroutine_names(module) or module.names.known(name):
            return None if _is_variable(function, name) else _by_name(function, name)
        case ast.Attribute(ast.Call(ast.Name("super"), []), name):
            return _method(function, name, of_base=True)
        case ast.Attribute(ast.Name(owner), name):
            if owner == function.self_here:
                return _method(function, name) if name in _coroutine_names(module) else None
            if module.names.known(owner):
                return _imported(function, node)
            return _of_object(function, owner, name) if name in _coroutine_names(module) else None
    return None


def _of_object(function: Function, owner: str, name: str) -> Function | None:
    """A method of an object that a local name holds, of a class of this file: `store = Store()`."""
    match function.assigned.get(owner):
        case [ast.Call(ast.Name(known))] if owner not in function.parameters:
            klass = function.module.classes.get(known)
            return _sure(klass.methods.get(name)) if klass is not None else None
    return None


def _method(function: Function, name: str, of_base: bool = False) -> Function | None:
    klass = function.klass
    classes = klass.classes_in_file[int(of_base) :] if klass else ()
    found = (each.methods.get(name) for each in classes)
    return _sure(next(filter(None, found), None))


@remembered
def _coroutine_names(module: Module) -> frozenset[str]:
    return frozenset(each.name for each in module.functions if each.is_async)


def _by_name(function: Function, name: str) -> Function | None:
    around: Function | None = function
    while around is not None:
        inner = next((each for each in around.inner if each.name == name and not each.owner), None)
        if inner is not None:
            return _sure(inner)
        around = around.outer
    found = function.module.find_function(name)
    return _sure(found) if found is not None else _imported(function, ast.Name(name))


def _is_variable(function: Function, name: str) -> bool:
    around: Function | None = function
    while around is not None:
        if name in around.parameters or name in around.local_names:
            return True
        around = around.outer
    return name in function.module.body.local_names


def _imported(function: Function, node: ast.expr) -> Function | None:
    """An imported one. Its file is only read if some file has a coroutine function of that name."""
    project = function.module.project
    name = function.name_of(node)
    if project is None or not project.has_coroutine_function(name.rpartition(".")[2]):
        return None
    return _sure(project.find_function(name))


def _sure(found: Function | None) -> Function | None:
    """The function, if it is a plain coroutine function and no other has its name."""
    if found is None or not isinstance(found.node, ast.AsyncFunctionDef) or found.is_generator:
        return None
    if found.node.decorator_list or found.qualname in _plain_functions(found.module):
        return None
    return found


@remembered
def _plain_functions(module: Module) -> frozenset[str]:
    """The names of the functions that are no coroutine functions."""
    return frozenset(each.qualname for each in module.functions if not each.is_async)


def _is_expected(function: Function, call: ast.Call) -> bool:
    """Whether an error is expected, or `if not iscoroutinefunction(f)` stands around."""
    tests = (each for test, _ in tests_around(function, call) for each in ast.walk(test.test))
    if any("coroutine" in last_name(each) or "awaitable" in last_name(each) for each in tests):
        return True
    return any(
        isinstance(up, ast.With)
        and any(
            isinstance(item.context_expr, ast.Call)
            and last_name(item.context_expr.func) in _EXPECTING
            for item in up.items
        )
        for up in ancestors(function, call)
    )


RULE = Rule(_CODE, check, needs=("asyncio|<unawaited>",))
