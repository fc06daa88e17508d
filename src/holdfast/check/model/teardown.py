"""How a method ends a task of its object: where it cancels, where it joins, and from where on the
task is over.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from holdfast.check.model.effects import Effect, effects, is_direct
from holdfast.check.model.function import Function
from holdfast.check.model.guards import heads_around
from holdfast.check.model.module import Class

__all__ = ["Ending", "ending", "is_whole_close"]


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """What a method does to end the task of one attribute."""

    function: Function
    cancels: tuple[Effect, ...]
    joins: tuple[Effect, ...]

    def runs_at(self, node: ast.AST) -> bool:
        """Whether the task may not have been joined yet where a node stands."""
        step = self.function.flow.of(node)
        if step is None:
            return False
        over = heads_around(self.function, (each.node for each in self.joins), [node])
        return self.function.flow.reaches(self.function.flow.entry, step, lambda n: n in over)

    def is_untouched_at(self, node: ast.AST) -> bool:
        """Whether it may have been neither cancelled nor joined yet where a node stands."""
        step = self.function.flow.of(node)
        if step is None:
            return False
        ends = (each.node for each in (*self.cancels, *self.joins))
        over = heads_around(self.function, ends, [node])
        return self.function.flow.reaches(self.function.flow.entry, step, lambda n: n in over)


def ending(klass: Class, function: Function, root: str) -> Ending:
    """How a method ends the task of an attribute."""
    mine = [each for each in effects(function, klass) if each.root == root and each.step]
    return Ending(
        function,
        tuple(each for each in mine if each.kind == "cancel" and is_direct(each.deed)),
        tuple(each for each in mine if each.kind == "join"),
    )


def is_whole_close(function: Function) -> bool:
    """Whether a close method is asked for nothing: one with a key ends only a part."""
    if isinstance(function.node, ast.Lambda):
        return False
    if function.name.startswith("__"):
        return True
    given = function.node.args
    required = (
        len([*given.posonlyargs, *given.args]) - len(given.defaults) - bool(function.self_name)
    )
    lacking = sum(default is None for default in given.kw_defaults)
    return required <= 0 and not lacking
