"""What a program has left running, or unreaped, when it has ended.

The worst first: a child that runs, one whose exit nobody waited for, a grandchild that lives on.
"""

from __future__ import annotations

from holdfast.explore.twins.children.table import Child, Table

__all__ = ["left_over"]

Finding = tuple[str, str, tuple[str, ...]]


def left_over(table: Table) -> Finding | None:
    """The first kind that is there, with the lines that started them."""
    children = list(table.children.values())
    running = [child for child in children if not child.process.ending]
    if running:
        what = f"{_names(running)} still running when the program has ended"
        return "HF701", what, _lines(running)
    unreaped = [child for child in children if child.late]
    if unreaped:
        what = f"{_names(unreaped)} ending when the program has ended: nobody waited for the exit"
        return "HF702", what, _lines(unreaped)
    alive = [process for process, _ in table.grandchildren if not process.ending]
    if alive:
        parents = {parent for process, parent in table.grandchildren if process in alive}
        what = f"{len(alive)} grandchild(ren) still running when the program has ended"
        return "HF703", what, _lines([c for c in children if c.process.pid in parents])
    return None


def _names(children: list[Child]) -> str:
    names = ", ".join(child.process.name for child in children)
    return f"{names} {'is' if len(children) == 1 else 'are'}"


def _lines(children: list[Child]) -> tuple[str, ...]:
    return tuple(f"{child.process.name} started at {child.origin}" for child in children)
