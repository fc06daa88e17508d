"""HF101: a task that nothing holds is put into a set, and leaves it when it is done."""

from __future__ import annotations

import ast
from collections import Counter

from holdfast.check.finding import Edit, Fix, Place
from holdfast.check.fixes.holding import holder_for
from holdfast.check.fixes.inserting import after, stands_alone
from holdfast.check.fixes.naming import free_among, mentioned
from holdfast.check.model.function import Function

__all__ = ["kept_until_done"]

_NAMES = ("task", "background_task", "held_task")


def kept_until_done(function: Function, call: ast.Call) -> Fix | None:
    """Hold the task that a call gives. None where the call is no statement of its own, or a part of
    a lambda: then there is no line to do it on."""
    module = function.module
    stmt = module.parents.get(call)
    if not isinstance(stmt, ast.stmt) or function is module.body:
        return None
    name = _name_in(function, stmt)
    holder = holder_for(function) if name and stands_alone(module, stmt) else None
    if holder is None:
        return None
    lines = [f"{holder.name}.add({name})"]
    if isinstance(stmt, ast.Expr) or not _is_discarded(function, name, holder.name):
        lines.append(f"{name}.add_done_callback({holder.name}.discard)")
    edits = [*holder.edits, after(module, stmt, *lines)]
    if isinstance(stmt, ast.Expr):
        place = Place(
            module.path, stmt.lineno, stmt.col_offset + 1, stmt.lineno, stmt.col_offset + 1
        )
        edits = _with_name(edits, Edit(place, f"{name} = "))
    return Fix(f"keep the task in `{holder.name}` until it is done", tuple(edits))


def _name_in(function: Function, stmt: ast.stmt) -> str:
    """The name that has the task, or can have it."""
    match stmt:
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
            return name
        case ast.Expr():
            return free_among(_NAMES, mentioned(function.node) - _spare(function))
    return ""


def _spare(function: Function) -> Counter[str]:
    """The names that hold a task for a moment, as this fix does, each as often as they do."""
    parents = function.module.parents
    names = (each for each in ast.walk(function.node) if isinstance(each, ast.Name))
    return Counter(each.id for each in names if _is_holding(each, parents.get(each)))


def _is_holding(name: ast.Name, use: ast.AST | None) -> bool:
    match use:
        case ast.Attribute(attr="add_done_callback") | ast.Call(ast.Attribute(attr="add")):
            return True
        case ast.Assign([target], ast.Call()):
            return target is name
    return False


def _is_discarded(function: Function, name: str, holder: str) -> bool:
    """Whether the task is taken out of the set already, though nobody puts it in."""
    if len(function.assigned[name]) > 1:
        return False  # that may be another task of this name
    wanted = f"{name}.add_done_callback({holder}.discard)"
    return any(ast.unparse(call) == wanted for call in function.calls)


def _with_name(edits: list[Edit], naming: Edit) -> list[Edit]:
    """The edits and one more, which comes behind what is put in at the same place."""
    others = [each for each in edits if each.place != naming.place]
    here = "".join(each.text for each in edits if each.place == naming.place)
    return [*others, Edit(naming.place, here + naming.text)]
