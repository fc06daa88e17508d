"""How a finding is seen to happen: the line of pytest that shows it, once there is a test of the
function. Which codes have one is decided here, and nowhere else.

What is left behind is shown by the leak detector, on the command line; what takes a schedule, or a
cancel at the wrong moment, by the explorer, with a marker above the test.
"""

from __future__ import annotations

import ast

from holdfast.check.finding import Finding
from holdfast.check.model.function import Function
from holdfast.check.model.module import Module

__all__ = ["in_general", "line_for"]

_LEAKS = "pytest -k {name} --holdfast"
_EXPLORED = "@pytest.mark.explore"
_CANCELLED = '@pytest.mark.explore(cancel="main")'
# By code. A task that is left behind is reported as HF102 there, whatever has left it.
_LINES = {
    "HF101": _LEAKS,
    "HF103": _LEAKS,
    "HF111": _LEAKS,
    "HF112": _LEAKS,
    "HF113": _LEAKS,
    "HF131": f"{_LEAKS} -o holdfast_checks=+retained",
    "HF303": _LEAKS,
    "HF412": _LEAKS,
    "HF501": _CANCELLED,
    "HF512": _CANCELLED,
    "HF604": _EXPLORED,
    "HF731": _LEAKS,
}
_SWALLOWED = "HF501"


def line_for(module: Module, finding: Finding) -> str:
    """The line that would show a finding; empty where there is none."""
    line = _LINES.get(finding.code, "")
    if not line:
        return ""
    at = finding.place.line
    function = next((each for each in module.functions if _is_at(each.node, at)), None)
    if finding.code == _SWALLOWED and function is not None and _goes_round(function, at):
        line = _LEAKS  # it never ends, so it is there when the test has ended
    name = _tested_as(module, function, at)
    return line.format(name=name) if name else ""


def in_general(code: str) -> str:
    """The same for a code, with NAME for the name of the test."""
    return _LINES.get(code.strip().upper(), "").format(name="NAME")


def _is_at(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", None) or 0)


def _goes_round(function: Function, line: int) -> bool:
    return any(isinstance(node, ast.While) and _is_at(node, line) for node in function.nodes)


def _tested_as(module: Module, function: Function | None, line: int) -> str:
    """What a test of the place has in its name: a function's, or that of the class if the function
    has one that only Python knows."""
    name = function.name if function is not None else ""
    if name.isidentifier() and not name.endswith("__"):
        return name.strip("_")
    classes = (each for each in module.classes.values() if _is_at(each.node, line))
    return next((each.name.strip("_") for each in classes), "")
