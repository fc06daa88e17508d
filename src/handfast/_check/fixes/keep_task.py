"""HF101: keep a task in a set until it is done.

The set is an existing one or a new one. A new set is an attribute if the `__init__` of the class is
certain to create it before it is used. Otherwise it is a name of the module, which is always right.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.finding import Edit, Fix
from handfast._check.fixes.insertion import (
    after,
    asyncio_in,
    before,
    free_among,
    insert,
    is_alone_on_lines,
    is_hidden,
    mentioned,
    newline,
    top_statement,
)
from handfast._check.model.syntax.ancestors import assignments
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module

_TASK_NAMES = ("task", "background_task", "held_task")
_SET_NAMES = ("_background_tasks", "_held_tasks", "_tasks_under_way")
# A class with one of these may not accept, or may copy, a new attribute.
_RESTRICTING = {
    "__slots__", "__setattr__", "__getattr__", "__getattribute__", "__new__", "__getstate__",
    "__setstate__", "__reduce__", "__reduce_ex__", "__copy__", "__deepcopy__",
}  # fmt: skip


def kept_until_done(function: Function, call: ast.Call) -> Fix | None:
    """Keep the task that a call returns. None if the call is part of an expression or a lambda:
    there is no place for another statement."""
    module = function.module
    stmt = module.parents.get(call)
    if not isinstance(stmt, ast.stmt) or function is module.body:
        return None
    name = _name_in(function, stmt)
    task_set = _task_set_for(function) if name and is_alone_on_lines(module, stmt) else None
    if task_set is None:
        return None
    lines = [f"{task_set.name}.add({name})"]
    if isinstance(stmt, ast.Expr) or not _is_discarded(function, name, task_set.name):
        lines.append(f"{name}.add_done_callback({task_set.name}.discard)")
    edits = [*task_set.edits, after(module, stmt, *lines)]
    if isinstance(stmt, ast.Expr):
        naming = insert(module, stmt.lineno, stmt.col_offset + 1, f"{name} = ")
        edits = _with_edit(edits, naming)
    return Fix(f"keep the task in `{task_set.name}` until it is done", tuple(edits))


def _name_in(function: Function, stmt: ast.stmt) -> str:
    """Return the name of the task, or a free one."""
    match stmt:
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
            return name
        case ast.Expr():
            return free_among(_TASK_NAMES, _taken_names(function))
    return ""


@remembered
def _taken_names(function: Function) -> Counter[str]:
    """Count the uses of names, without those that only pass a task on to a set, as this fix does."""
    parents = function.module.parents
    names = (each for each in ast.walk(function.node) if isinstance(each, ast.Name))
    reusable = Counter(each.id for each in names if _is_passing_on(each, parents.get(each)))
    return mentioned(function.node) - reusable


def _is_passing_on(name: ast.Name, use: ast.AST | None) -> bool:
    match use:
        case ast.Attribute(attr="add_done_callback") | ast.Call(ast.Attribute(attr="add")):
            return True
        case ast.Assign([target], ast.Call()):
            return target is name
    return False


def _is_discarded(function: Function, name: str, task_set: str) -> bool:
    """Whether the code removes the task from the set already."""
    if len(function.assigned[name]) > 1:
        return False  # it may remove another task of the same name
    return f"{name}.add_done_callback({task_set}.discard)" in _callbacks_added(function)


@remembered
def _callbacks_added(function: Function) -> set[str]:
    return {
        ast.unparse(call)
        for call in function.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_done_callback"
    }


def _with_edit(edits: list[Edit], naming: Edit) -> list[Edit]:
    """Add an edit; its text comes after other text that is inserted at the same place."""
    others = [each for each in edits if each.place != naming.place]
    here = "".join(each.text for each in edits if each.place == naming.place)
    return [*others, Edit(naming.place, here + naming.text)]


# --- the set -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TaskSet:
    """The expression for the set where a task is created, and the edits that create the set."""

    name: str
    edits: tuple[Edit, ...] = ()


def _task_set_for(function: Function) -> _TaskSet | None:
    """Return the set for the tasks that a function creates."""
    return _attribute(function) or _of_module(function)


# --- an attribute --------------------------------------------------------------------------------


def _attribute(function: Function) -> _TaskSet | None:
    klass, me = function.klass, _self_in(function)
    init = _init_of(klass) if klass is not None and me else None
    if klass is None or init is None:
        return None
    existing = _existing_attribute(klass, init)
    if existing:
        return _TaskSet(f"{me}.{existing}")
    if not _can_be_extended(klass):
        return None
    name = free_among(_SET_NAMES, _mentioned(klass.module))
    edit = _made_in(init, name) if name else None
    return None if edit is None else _TaskSet(f"{me}.{name}", (edit,))


def _self_in(function: Function) -> str:
    """Return the name of the object here; empty if an inner function shadows it."""
    me, inner = function.self_here, function
    while inner.owner is None and inner.outer is not None:
        if me in inner.parameters or me in inner.local_names:
            return ""
        inner = inner.outer
    return "" if me in inner.local_names else me


def _init_of(klass: Class) -> Function | None:
    init = klass.methods.get("__init__")
    if init is None or init.node not in klass.node.body or not init.self_name:
        return None
    return init if isinstance(init.node, ast.FunctionDef) else None


@remembered
def _can_be_extended(klass: Class) -> bool:
    """Whether every object of the class runs its `__init__` and accepts a new attribute."""
    if klass.node.decorator_list or klass.node.keywords or not klass.is_complete:
        return False
    if any(_defined(each.node) & _RESTRICTING for each in klass.lineage):
        return False
    subclasses = (each for each in klass.module.classes.values() if klass in each.lineage[1:])
    return all("__init__" not in each.methods or _calls_base_init(each) for each in subclasses)


def _defined(node: ast.ClassDef) -> set[str]:
    names = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    for each in node.body:
        targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def _calls_base_init(klass: Class) -> bool:
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"
        for call in klass.methods["__init__"].calls
    )


def _made_in(init: Function, name: str) -> Edit | None:
    node, module = init.node, init.module
    assert isinstance(node, ast.FunctionDef)
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    beside = body[0] if body else node.body[0]
    if node.decorator_list or not is_alone_on_lines(module, beside):
        return None
    line = f"{init.self_name}.{name}{_type(module, node.lineno)} = set()"
    return before(module, beside, line) if body else after(module, beside, line)


def _type(module: Module, line: int) -> str:
    """Return the annotation of the set, in a file that has annotations."""
    asyncio = asyncio_in(module, above=line) if _is_typed(module) else ""
    return f": set[{asyncio}.Task[object]]" if asyncio else ""


@remembered
def _is_typed(module: Module) -> bool:
    return any(
        getattr(function.node, "returns", None) is not None
        or any(each.annotation is not None for each in function.node.args.args)
        for function in module.functions
    )


@remembered
def _existing_attribute(klass: Class, init: Function) -> str:
    """Return the attribute that is a set in which the class keeps tasks until they are done."""
    kept = [
        name.removeprefix("self.")
        for function in klass.functions
        for call in function.calls
        if (name := _discarded_from(function, call))
    ]
    given = [
        (attribute, value)
        for function in (klass.functions if kept else ())
        for stmt in function.nodes
        for attribute, value in _assigned(function, stmt)
    ]
    made = {attribute for stmt in init.body for attribute, _ in _assigned(init, stmt)}
    for name in kept:
        values = [value for attribute, value in given if attribute == name]
        if name in made and all(map(_is_new_set, values)):
            return name
    return ""


def _assigned(function: Function, stmt: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    pairs = assignments(stmt)
    if isinstance(stmt, ast.AugAssign):
        pairs = iter([(stmt.target, stmt.value)])
    yield from ((function.own_attribute(target), value) for target, value in pairs)


def _discarded_from(function: Function, call: ast.Call) -> str:
    """Return the set of `task.add_done_callback(self._tasks.discard)`."""
    match call:
        case ast.Call(ast.Attribute(_, "add_done_callback"), [ast.Attribute(kept_in, "discard")]):
            return function.name_of(kept_in)
    return ""


def _is_new_set(value: ast.expr) -> bool:
    match value:
        case ast.Call(ast.Name("set"), [], []):
            return True
    return False


# --- a name of the module ------------------------------------------------------------------------


def _of_module(function: Function) -> _TaskSet | None:
    module = function.module
    for name in _existing_names(module):
        if not is_hidden(function, name):
            return _TaskSet(name)
    top = _place_for_new(module, function.node)
    name = free_among(_SET_NAMES, _mentioned(module))
    if not name or top.col_offset or not is_alone_on_lines(module, top):
        return None
    return _TaskSet(name, (_above_definitions(module, top, name),))


def _place_for_new(module: Module, node: ast.AST) -> ast.stmt:
    """Return one place for all tasks of the module, so that two fixes never create two sets."""
    own = top_statement(module, node)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return next(each for each in module.source.tree.body if each is own or isinstance(each, kinds))


def _above_definitions(module: Module, stmt: ast.stmt, name: str) -> Edit:
    edit = before(module, stmt, "")
    line = edit.place.line
    while line > 2 and module.source.line(line - 1).startswith("#"):
        line -= 1  # comments above the definition stay there
    return insert(module, line, 1, f"{name}{_type(module, line)} = set()" + newline(module) * 3)


@remembered
def _existing_names(module: Module) -> list[str]:
    made = {
        target.id
        for stmt in module.source.tree.body
        for target, value in _top_assigned(stmt)
        if isinstance(target, ast.Name) and _is_new_set(value)
    }
    names = dict.fromkeys(_discarded_from(*each) for each in module.calls())
    return [each for each in names if each in made and len(module.body.assigned[each]) == 1]


def _top_assigned(stmt: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    match stmt:
        case ast.Assign([target], value):
            yield target, value
        case ast.AnnAssign(target, _, value) if value is not None:
            yield target, value


@remembered
def _mentioned(module: Module) -> Counter[str]:
    return mentioned(module.source.tree)
