"""A rule that is small enough to be seen through, for the tests of all that is around the rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.check.finding import Edit, Finding, Fix, place_of
from holdfast.check.model.module import Module
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE", "asks_base", "asks_names"]


def calls_of(module: Module, name: str) -> Iterator[ast.Call]:
    for _, call in module.calls():
        if isinstance(call.func, ast.Name) and call.func.id == name:
            yield call


def _dropped(module: Module) -> Iterator[Finding]:
    """Every call of `drop`, which `keep` would mend."""
    for call in calls_of(module, "drop"):
        edit = Edit(place_of(module.path, call.func), "keep")
        yield found(
            "HF101",
            module,
            call,
            "This is dropped, and imported above",
            related(module, module.source.tree.body[0], "imported here"),
            fix=Fix("Keep it", (edit,), safe=True),
        )


def _asks_base(module: Module) -> Iterator[Finding]:
    """Every class whose bases, seen over all files, have no `close`."""
    for klass in module.classes.values():
        if "close" not in klass.all_methods:
            yield found("HF104", module, klass.node, "There is no close")


def _asks_names(module: Module) -> Iterator[Finding]:
    """Every class whose name nobody ends as an attribute elsewhere."""
    assert module.project is not None
    for klass in module.classes.values():
        if klass.name.lower() not in module.project.ended_elsewhere:
            yield found("HF102", module, klass.node, "Nobody ends it")


RULE = Rule("HF101", _dropped)
asks_base = Rule("HF104", _asks_base)
asks_names = Rule("HF102", _asks_names)
