"""HF611: the text of an exception decides what is done with it.

Reported: a handler of a broad exception in an async function tests the text of what it has caught,
itself or in a function of this module, and then raises on one path and continues on another. Pedantic
for a narrow exception, because some libraries have one class for everything; for a function such as
`is_closed_error(e)`, in which a project collects the texts of such a library; and for a code in the
text, such as `net::ERR_ABORTED`, a number of an error or the name of a class.
Not reported: where every path raises (a translation), and where none does (the text selects a log
line).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.ancestors import last_name, steps_up
from handfast._check.model.syntax.call_graph import resolve_function
from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.control_flow import suspends
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.handlers import Handler, handlers
from handfast._check.model.syntax.module import Module
from handfast._check.rules.rule import Rule, related, report

_CODE = "HF611"
_TEXT = {"str", "repr"}
_PARTS = {"args", "message", "msg"}
_SAME = {"lower", "upper", "casefold", "strip", "rstrip", "lstrip"}
# `net::ERR_ABORTED`, `ora-00955`, `110043`, `BrokenResourceError`.
_CODES = re.compile(r"[\w:]*[A-Z]{2,}_[A-Z_]+|(?:[A-Za-z]+-?)?\d{3,}|\w+(?:Error|Exception)")
_TESTING = {"startswith", "endswith", "find", "search", "match", "findall", "count"}


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        if not function.is_async:
            continue
        for handler in handlers(function):
            if handler.node.name and any(map(suspends, handler.tried.body)):
                yield from _evaluate(module, handler)


def _evaluate(module: Module, handler: Handler) -> Iterator[Finding]:
    assert handler.node.name is not None
    where = _tested(handler.function, list(handler.nodes), handler.node.name)
    tested = None if where is not None else _tested_by_callee(handler)
    if tested is not None:
        where = tested[0]
    if where is None or not handler.raises or not handler.swallows:
        return
    if not _makes_a_difference(handler, where):
        return
    yield report(
        _CODE,
        module,
        where,
        f"`{handler.function.qualname}` decides by the text of an exception whether to raise it or to "
        "continue, and another failure may have the same text: test its type or a code; where a library has "
        "one class for all errors, compare its whole message, or its args",
        related(module, handler.node, "caught here"),
        related(module, tested[1], "the text is tested here") if tested else None,
        pedantic=not handler.is_broad
        or _has_code(tested[1] if tested else where)
        or bool(tested and _names_a_kind(tested[0])),
    )


def _names_a_kind(call: ast.AST) -> bool:
    """Whether a call by its name tells whether an error is one of a kind."""
    return isinstance(call, ast.Call) and last_name(call.func).lstrip("_").startswith("is_")


def _has_code(test: ast.AST) -> bool:
    """Whether a test looks for a code, which no other failure has in its text."""
    return any(
        isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and _CODES.fullmatch(each.value)
        for each in ast.walk(test)
    )


def _makes_a_difference(handler: Handler, where: ast.AST) -> bool:
    """Whether the two branches of the test end differently, if it is the test of an `if`."""
    whole, up = next(
        (part, up)
        for part, up in steps_up(handler.function, where)
        if not isinstance(up, ast.BoolOp | ast.UnaryOp)
    )
    head = handler.function.flow.of(up) if isinstance(up, ast.If) and whole is up.test else None
    if head is None or not isinstance(up, ast.If):
        return True
    yes = [each for each in head.after if each is handler.function.flow.of(up.body[0])]
    no = [each for each in head.after if each not in yes]
    return handler.ends_after(yes) != handler.ends_after(no)


def _tested_by_callee(handler: Handler) -> tuple[ast.AST, ast.AST] | None:
    """A call that passes the exception to a function which tests its text, and where that does."""
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
    """Where the text of `name` is tested."""
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
        if test is not None and any(_tests_text(each, name, texts) for each in walk_here(test)):
            return test
    return None


def _tests_text(node: ast.AST, name: str, texts: dict[str, bool]) -> bool:
    match node:
        case ast.Compare(left, [ast.In() | ast.NotIn()], [right]):
            return _is_text(right, name, texts) and not _is_text(left, name, texts)
        case ast.Compare(left, [ast.Eq() | ast.NotEq()], [ast.Constant(str())]):
            return _is_text(left, name, texts)
        case ast.Call(ast.Attribute(holder, asking), arguments) if asking in _TESTING:
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


RULE = Rule(
    _CODE,
    check,
    any_library=True,
    needs=("except", "async ", "raise", "str(|repr(|args|message|msg|{"),
)
