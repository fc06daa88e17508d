"""Shows the results: a small table, or one JSON object."""

from __future__ import annotations

import platform
from typing import Any

from benchmarks.measuring import Outcome


def as_json(outcome: Outcome) -> dict[str, Any]:
    ratios = outcome.ratios
    return {
        "work": outcome.comparison.work,
        "python": platform.python_version(),
        "n": outcome.n,
        "rounds": outcome.rounds,
        "ratios": {name: round(ratio, 4) for name, ratio in ratios.items()},
        "targets": {
            target.ratio: {
                "sense": target.sense,
                "bound": target.bound,
                "met": target.met(ratios),
            }
            for target in outcome.comparison.targets
        },
        "met": outcome.met,
        "unit": outcome.comparison.unit,
        "best": {name: figure.best for name, figure in outcome.figures.items()},
        "median": {name: figure.median for name, figure in outcome.figures.items()},
        "not_measured": list(outcome.not_measured),
        "load": round(outcome.load, 2),
    }


def as_text(outcome: Outcome) -> str:
    comparison = outcome.comparison
    title = comparison.title.format(n=outcome.n)
    rounds = "1 round" if outcome.rounds == 1 else f"best of {outcome.rounds} rounds"
    lines = [f"{comparison.work}: {title}", f"Python {platform.python_version()}, {rounds}", ""]
    lines += _aligned(["", "best", "median"], _figure_rows(outcome))
    if outcome.load > 1:
        lines += ["", f"The machine was busy (load {outcome.load:.1f} a processor): rough figures."]
    lines += [""]
    lines += _aligned(["ratio", "", "target", ""], _ratio_rows(outcome))
    return "\n".join(lines) + "\n"


def _figure_rows(outcome: Outcome) -> list[list[str]]:
    unit = outcome.comparison.unit
    rows = [
        [name, _readable(figure.best, unit), _readable(figure.median, unit)]
        for name, figure in outcome.figures.items()
    ]
    return rows + [[name, "not measured", "not installed"] for name in outcome.not_measured]


def _ratio_rows(outcome: Outcome) -> list[list[str]]:
    ratios = outcome.ratios
    targets = {target.ratio: target for target in outcome.comparison.targets}
    rows = []
    for ratio in outcome.comparison.ratios:
        value = f"{ratios[ratio.name]:.2f}" if ratio.name in ratios else "not measured"
        row = [ratio.name, value, "", ""]
        if target := targets.get(ratio.name):
            verdict = "met" if target.met(ratios) else "MISSED"
            row[2:] = [f"{target.sense} {target.bound:g}", verdict]
        rows.append(row)
    return rows


def _readable(value: float, unit: str) -> str:
    return f"{value:,.0f} bytes" if unit == "bytes" else f"{value * 1000:,.1f} ms"


def _aligned(head: list[str], rows: list[list[str]]) -> list[str]:
    """Align names to the left and the other columns to the right."""
    table = [head, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
