"""The comparisons, one file each. To add one: write the file, and its line in the table below."""

from __future__ import annotations

from importlib import import_module

from benchmarks.comparison import Comparison

TABLE = {
    "spawn": "benchmarks.comparisons.spawn",
    "submit": "benchmarks.comparisons.submit",
    "close": "benchmarks.comparisons.close",
    "memory": "benchmarks.comparisons.memory",
    "keyed": "benchmarks.comparisons.keyed",
    "process": "benchmarks.comparisons.process",
    "import": "benchmarks.comparisons.importing",
    "explore": "benchmarks.comparisons.explore",
    "search": "benchmarks.comparisons.search",
    "leaks": "benchmarks.comparisons.leaks",
    "check": "benchmarks.comparisons.check",
    "watch": "benchmarks.comparisons.watch",
}
"""WORK, and the module whose `COMPARISON` measures it."""


def comparison_of(work: str) -> Comparison:
    """Load one comparison; the modules of the others are not imported."""
    comparison: Comparison = import_module(TABLE[work]).COMPARISON
    return comparison
