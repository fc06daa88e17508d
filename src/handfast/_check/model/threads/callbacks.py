"""The setting `thread-callbacks`: functions and methods that call their arguments on a thread.

    package.module.function    called by that name, however it is imported
    package.*.method           a method of anything, in a file that imports from the package
    *.method                   a method of anything, anywhere

A function that is assigned to such a name (`client.on_message = f`) counts as an argument.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module


def declare(module: Module, callbacks: Iterable[str]) -> None:
    """Store the settings that can apply to this module."""
    module.memo[declare] = [each for each in callbacks if _may_occur(module, each)]


def _may_occur(module: Module, callback: str) -> bool:
    owner, _, name = callback.rpartition(".")
    package = owner.removesuffix("*").removesuffix(".")
    is_of_all = not owner.endswith("*") or not package
    return name in module.source.text and (is_of_all or _imports(module, package))


def _imports(module: Module, package: str) -> bool:
    # `import a.b` binds only `a`, so `Names` does not know about `b`.
    return module.names.imports(package) or f"import {package}\n" in module.source.text


def given(module: Module) -> Iterator[tuple[Function, ast.AST, ast.expr]]:
    """The arguments of these functions: the function around the call, the call, the argument."""
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
