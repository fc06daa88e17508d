"""The tree of loops, scopes and tasks as text."""

from __future__ import annotations

from collections.abc import Iterator

from handfast._watch.snapshot import Snapshot
from handfast._watch.views.cells import fit, printable, width_of
from handfast._watch.views.table import headline, held_up
from handfast._watch.views.task_tree import TreeRow, tree_rows

_DEEPEST = 24
"""Rows are not indented further than this: a chain may have thousands of tasks."""


def tree(snapshot: Snapshot, width: int | None = None) -> str:
    """Return the tree as text, its lines cut to `width` columns if it is given."""
    lines = [headline(snapshot), *held_up(snapshot), *tree_lines(snapshot)]
    lines += [f"not checked: {printable(each)}" for each in snapshot.not_checked]
    if width is not None:
        lines = [fit(each, width).rstrip() if width_of(each) > width else each for each in lines]
    return "\n".join(lines) + "\n"


def tree_lines(snapshot: Snapshot) -> list[str]:
    """Return the rows of the tree with the lines that connect them."""
    rows = list(tree_rows(snapshot))
    return [
        f"{branches}{row.text}{f'  ({row.detail})' if row.detail else ''}"
        for row, branches in zip(rows, reversed(list(_branches(rows))), strict=True)
    ]


def _branches(rows: list[TreeRow]) -> Iterator[str]:
    """What stands before each row, the last row first: only from below it is known whether a row
    has another one of its depth after it."""
    below: list[bool] = [False] * (_DEEPEST + 1)
    for row in reversed(rows):
        depth = min(row.depth, _DEEPEST)
        rails = ["│  " if below[each] else "   " for each in range(1, depth)]
        corner = "" if not depth else "├─ " if below[depth] else "└─ "
        number = f"[{row.depth}] " if row.depth > _DEEPEST else ""
        yield "".join(rails) + corner + number
        below[depth] = True
        below[depth + 1 :] = [False] * (_DEEPEST - depth)
