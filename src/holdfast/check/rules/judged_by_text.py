"""HF611: what to do with an exception is decided by the words in its message.

Evidence: a handler of a broad exception in an async function tests the text of what it has caught,
itself or in a function of this module that it asks, and then raises on one way and goes on as if
nothing had been on another.
Silent where every way raises (a translation), and where no way does (the text chooses the words of
a log line). A narrow exception judged by its text is pedantic: some libraries have one class
for everything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.flow import suspends, walk_here
from holdfast.check.model.function import Function
from holdfast.check.model.handlers import Handler, handlers
from holdfast.check.model.module import Module
from holdfast.check.model.tasks import resolve_function
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE"]

_CODE = "HF611"
_TEXT = {"str", "repr"}
_PARTS = {"args", "message", "msg"}
_SAME = {"lower", "upper", "casefold", "strip", "rstrip", "lstrip"}
_ASKING = {"startswith", "endswith", "find", "search", "match", "findall", "count"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if not function.is_async:
            continue
        for handler in handlers(function):
            if handler.node.name and any(map(suspends, handler.tried.body)):
                yield from _judge(module, handler)


def _judge(module: Module, handler: Handler) -> Iterator[Finding]:
    assert handler.node.name is not None
    where = _tested(handler.function, list(handler.nodes), handler.node.name)
    asked = None if where is not None else _asked(handler)
    if asked is not None:
        where = asked[0]
    if where is None or not handler.raises or not handler.swallows:
        return
    if not _makes_a_difference(module, handler, where):
        return
    yield found(
        _CODE,
        module,
        where,
        f"`{handler.function.qualname}` decides by the words of an exception whether to raise it or to "
        "go on: another failure may have the same words",
        related(module, handler.node, "caught here"),
        *([related(module, asked[1], "the words are looked at here")] if asked else []),
        pedantic=not handler.is_broad,
    )


def _makes_a_difference(module: Module, handler: Handler, where: ast.AST) -> bool:
    """Whether the two ways of the test end differently, as far as it is the test of an `if`."""
    up = module.parents.get(where)
    while isinstance(up, ast.BoolOp | ast.UnaryOp):
        where, up = up, module.parents.get(up)
    head = handler.function.flow.of(up) if isinstance(up, ast.If) and where is up.test else None
    if head is None or not isinstance(up, ast.If):
        return True
    yes = [each for each in head.after if each is handler.function.flow.of(up.body[0])]
    no = [each for each in head.after if each not in yes]
    return handler.ends_after(yes) != handler.ends_after(no)


def _asked(handler: Handler) -> tuple[ast.AST, ast.AST] | None:
    """A call that gives the exception to a function which looks at its text, and where that does."""
    for node in handler.nodes:
        if not isinstance(node, ast.Call):
            continue
        given = [at for at, each in enumerate(node.args) if _is_name(each, handler.node.name)]
        for target in resolve_function(handler.function, node.func) if given else ():
            if target.module is not handler.function.module:
                continue
            at = given[0] + (1 if target.self_name else 0)
            if at < len(target.parameters):
                looked = _tested(target, target.nodes, target.parameters[at])
                if looked is not None:
                    return node, looked
    return None


def _is_name(node: ast.expr, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _tested(
    function: Function, nodes: list[ast.AST] | tuple[ast.AST, ...], name: str
) -> ast.AST | None:
    """Where the text of `name` decides something."""
    texts = {name: False}
    for node in nodes:
        match node:
            case ast.Assign([ast.Name(target)], value) if _is_text(value, name, texts):
                texts[target] = True
    for node in nodes:
        test = node.test if isinstance(node, (ast.If, ast.IfExp, ast.While)) else None
        if isinstance(node, ast.Return) and isinstance(
            node.value, (ast.Compare, ast.BoolOp, ast.Call)
        ):
            test = node.value if function.name_of(node.value) == "" else None
        if test is not None and any(_asks(each, name, texts) for each in walk_here(test)):
            return test
    return None


def _asks(node: ast.AST, name: str, texts: dict[str, bool]) -> bool:
    match node:
        case ast.Compare(left, [ast.In() | ast.NotIn()], [right]):
            return _is_text(right, name, texts) and not _is_text(left, name, texts)
        case ast.Compare(left, [ast.Eq() | ast.NotEq()], [ast.Constant(str())]):
            return _is_text(left, name, texts)
        case ast.Call(ast.Attribute(holder, asking), arguments) if asking in _ASKING:
            return any(_is_text(each, name, texts) for each in (holder, *arguments))
    return False


def _is_text(node: ast.expr, name: str, texts: dict[str, bool]) -> bool:
    match node:
        case ast.Name(own):
            return texts.get(own, False)
        case ast.Call(ast.Name(function), [ast.Name(own)]) if function in _TEXT:
            return own == name
        case ast.Call(ast.Attribute(inner, method)) if method in _SAME:
            return _is_text(inner, name, texts)
        case ast.Call(ast.Name("str"), [inner]) | ast.Subscript(inner):
            return _is_text(inner, name, texts)
        case ast.Attribute(ast.Name(own), part) if part in _PARTS:
            return own == name
        case ast.JoinedStr(values):
            return any(isinstance(each, ast.FormattedValue) and _is_name(each.value, name)
                       for each in values)  # fmt: skip
    return False


RULE = Rule(_CODE, check)
