"""Tiny rules, for the tests of the engine."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from handfast._check.finding import Edit, Finding, Fix, place_of
from handfast._check.model.syntax.module import Module
from handfast._check.rules.rule import Rule, related, report

__all__ = ["RULE", "never_ended", "no_close"]


def calls_of(module: Module, name: str) -> Iterator[ast.Call]:
    for _, call in module.calls():
        if isinstance(call.func, ast.Name) and call.func.id == name:
            yield call


def _dropped(module: Module) -> Iterator[Finding]:
    """Every call of `drop`; the fix calls `keep`."""
    for call in calls_of(module, "drop"):
        edit = Edit(place_of(module.path, call.func), "keep")
        yield report(
            "HF101",
            module,
            call,
            "This is dropped, and imported above",
            related(module, module.source.tree.body[0], "imported here"),
            fix=Fix("Keep it", (edit,), safe=True),
        )


def _no_close(module: Module) -> Iterator[Finding]:
    """Every class that has no `close`, also not in a base class of another file."""
    for klass in module.classes.values():
        if "close" not in klass.all_methods:
            yield report("HF104", module, klass.node, "There is no close")


def _never_ended(module: Module) -> Iterator[Finding]:
    """Every class whose name no other file ends as an attribute."""
    assert module.project is not None
    for klass in module.classes.values():
        if klass.name.lower() not in module.project.ended_elsewhere:
            yield report("HF102", module, klass.node, "No other file ends it")


RULE = Rule("HF101", _dropped)
no_close = Rule("HF104", _no_close)
never_ended = Rule("HF102", _never_ended)
