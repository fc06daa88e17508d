"""What a rule is: a code of the catalogue, and a function from a module to findings."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.check.finding import Finding, Fix, Related, place_of
from holdfast.check.model.module import Module

__all__ = ["Rule", "found", "related"]

Check = Callable[[Module], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. A pedantic one is silent unless it is asked for: it is wrong too often, or what it
    says is a matter of taste."""

    code: str
    check: Check
    pedantic: bool = False


def found(
    code: str,
    module: Module,
    node: ast.AST,
    message: str,
    *places: Related,
    fix: Fix | None = None,
    pedantic: bool = False,
    show: str = "",
) -> Finding:
    """A finding at `node`."""
    return Finding(code, message, place_of(module.path, node), places, fix, pedantic, show)


def related(module: Module, node: ast.AST, message: str) -> Related:
    """The other place."""
    return Related(place_of(module.path, node), message)
