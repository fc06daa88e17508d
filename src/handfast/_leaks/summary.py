"""The leaks of a whole run, grouped by the line that created them, most first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from handfast._leaks.leak import Leak


def summary(
    leaks: Iterable[Leak], not_checked: Iterable[str] | Mapping[str, int] = (), width: int = 100
) -> list[str]:
    """The lines: two for each origin, then one for each thing that could not be checked."""
    groups = by_origin(leaks)
    digits = len(str(len(groups[0]))) if groups else 0
    lines = [line for group in groups for line in _lines(group, digits, width)]
    for what, times in sorted(
        Counter(not_checked).items(), key=lambda entry: (-entry[1], entry[0])
    ):
        lines.append(f"not checked: {what}" + (f" ({times} times)" if times > 1 else ""))
    return lines


def by_origin(leaks: Iterable[Leak]) -> list[list[Leak]]:
    """The leaks of one kind that one line created, together; the most first."""
    groups: dict[tuple[str, str], list[Leak]] = {}
    for leak in leaks:
        groups.setdefault((leak.place, leak.code), []).append(leak)
    # By place where there are as many: the workers of xdist finish in any order.
    return [groups[key] for key in sorted(groups, key=lambda key: (-len(groups[key]), *key))]


def _lines(group: Sequence[Leak], digits: int, width: int) -> list[str]:
    leak = group[0]
    head = f"{len(group):>{digits}}  {leak.code} {leak.kind.name}  "
    indent = " " * (digits + 2)
    owners = sorted({each.owner for each in group if each.owner})
    lines = _fitted(head, leak.place, indent, width)
    if owners:
        more = f"left by {len(owners)} tests or fixtures, such as " if owners[1:] else "left by "
        lines += _fitted(indent + more, owners[0], indent, width)
    return lines


def _fitted(head: str, tail: str, indent: str, width: int) -> list[str]:
    """On one line if it fits. Nothing is cut: half a path cannot be clicked."""
    if len(head) + len(tail) <= width:
        return [head + tail]
    return [head.rstrip(), indent + tail]
