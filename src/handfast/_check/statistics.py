"""The number of findings of each code."""

from __future__ import annotations

import json
from collections import Counter

from handfast._check.finding import Finding
from handfast._check.report import Report
from handfast._check.settings.selection import CHECKER_CODES
from handfast.catalogue import kind


def statistics(report: Report) -> str:
    """Return a table, the most frequent first; `[*]` marks codes with a safe fix."""
    rows = _rows(report)
    if not rows:
        return ""
    digits = max(len(str(count)) for _, count, _ in rows)
    return "".join(
        f"{count:>{digits}}  {code}  {'[*]' if safe else '[ ]'}  {_name(code)}\n"
        for code, count, safe in rows
    )


def statistics_json(report: Report) -> str:
    """Return the same as JSON."""
    counts = [
        {"code": code, "name": _name(code), "count": count, "fixable": safe}
        for code, count, safe in _rows(report)
    ]
    return json.dumps(counts, indent=2) + "\n"


def _name(code: str) -> str:
    return CHECKER_CODES[code][0] if code in CHECKER_CODES else kind(code).name


def _rows(report: Report) -> list[tuple[str, int, bool]]:
    counts = Counter(finding.code for finding in report.everything)
    safe = {finding.code for finding in report.findings if _is_safe(finding)}
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [(code, count, code in safe) for code, count in ordered]


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.safe
