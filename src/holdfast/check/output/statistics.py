"""How many of each: code, number, name."""

from __future__ import annotations

import json
from collections import Counter

from holdfast.catalogue import KINDS
from holdfast.check.finding import Finding
from holdfast.check.report import Report
from holdfast.check.selection import BROKEN, UNUSED_NOQA

__all__ = ["statistics", "statistics_json"]

_OWN = {BROKEN: "file-not-checked", UNUSED_NOQA: "noqa-unused"}
_NAMES = {kind.code: kind.name for kind in KINDS} | _OWN


def statistics(report: Report) -> str:
    """A table, the most frequent first; `[*]` marks what --fix can mend."""
    rows = _rows(report)
    if not rows:
        return ""
    digits = max(len(str(count)) for _, count, _ in rows)
    return "".join(
        f"{count:>{digits}}  {code}  {'[*]' if safe else '[ ]'}  {_NAMES.get(code, '')}\n"
        for code, count, safe in rows
    )


def statistics_json(report: Report) -> str:
    """The same for programs."""
    told = [
        {"code": code, "name": _NAMES.get(code, ""), "count": count, "fixable": safe}
        for code, count, safe in _rows(report)
    ]
    return json.dumps(told, indent=2) + "\n"


def _rows(report: Report) -> list[tuple[str, int, bool]]:
    counts = Counter(finding.code for finding in report.everything)
    safe = {finding.code for finding in report.findings if _is_safe(finding)}
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [(code, count, code in safe) for code, count in ordered]


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.safe
