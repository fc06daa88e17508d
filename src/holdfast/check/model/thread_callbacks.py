"""What a project says of itself: the functions and methods that call what they are given on a thread.

    package.module.function    called by that name, however it is imported
    package.*.method           a method of anything, in a file that imports from the package
    *.method                   a method of anything, anywhere

What is assigned to such a method (`client.on_message = f`) is given to it as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from holdfast.check.model.function import Function
from holdfast.check.model.module import Module

__all__ = ["declare", "given"]


def declare(module: Module, callbacks: Iterable[str]) -> None:
    """Say what calls back on a thread, as far as this module is concerned."""
    module.memo[declare] = [each for each in callbacks if _may_occur(module, each)]


def _may_occur(module: Module, callback: str) -> bool:
    owner, _, name = callback.rpartition(".")
    package = owner.removesuffix("*").removesuffix(".")
    is_of_all = not owner.endswith("*") or not package
    return name in module.source.text and (is_of_all or _imports(module, package))


def _imports(module: Module, package: str) -> bool:
    # `import a.b` makes `a` known, and no more than that.
    return module.names.imports(package) or f"import {package}\n" in module.source.text


def given(module: Module) -> Iterator[tuple[Function, ast.AST, ast.expr]]:
    """What is given to them: where, by which node, and what."""
    callbacks: list[str] = module.memo.get(declare, [])
    if not callbacks:
        return
    methods = {each.rpartition(".")[2] for each in callbacks if "*" in each}
    names = {each for each in callbacks if "*" not in each}
    for function in (module.body, *module.functions):
        for node in function.nodes:
            match node:
                case ast.Call(func, values, keywords) if _is_meant(function, func, methods, names):
                    for value in (*values, *(each.value for each in keywords)):
                        yield function, node, value
                case ast.Assign([target], value) if _is_meant(function, target, methods, names):
                    yield function, node, value


def _is_meant(function: Function, node: ast.expr, methods: set[str], names: set[str]) -> bool:
    if isinstance(node, ast.Attribute) and node.attr in methods:
        return True
    name = function.name_of(node)
    return bool(names) and (name in names or f"{function.module.name}.{name}" in names)
