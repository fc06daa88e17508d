"""JSON for other programs: a list of objects, one for each cause. Published keys keep their meaning."""

from __future__ import annotations

import json as _json
from dataclasses import asdict
from typing import Any

from handfast._check.finding import Finding
from handfast._check.output import explain_line, page_url
from handfast._check.report import Report


def json(report: Report, **_: object) -> str:
    """Return all findings as a JSON list."""
    return _json.dumps([_cause(each) for each in report.causes], indent=2) + "\n"


def _cause(findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Return the first finding, with the number and the list of all."""
    places = [_place(each) for each in findings]
    return {**plain(findings[0]), "count": len(places), "places": places}


def _place(finding: Finding) -> dict[str, Any]:
    whole = plain(finding)
    return {key: whole[key] for key in ("message", *asdict(finding.place), "related", "fix")}


def plain(finding: Finding) -> dict[str, Any]:
    """Return one finding as plain data."""
    fix = finding.fix
    return {
        "code": finding.code,
        "message": finding.message,
        "url": page_url(finding.code) or None,
        "explain": explain_line(finding.code),
        **asdict(finding.place),
        "related": [
            {
                "path": each.place.path,
                "line": each.place.line,
                "column": each.place.column,
                "message": each.message,
            }
            for each in finding.related
        ],
        "fix": fix
        and {
            "message": fix.message,
            "safe": fix.safe,
            "edits": [asdict(edit.place) | {"text": edit.text} for edit in fix.edits],
        },
        "confidence": finding.confidence,
        "harm": finding.harm,
        "pedantic": finding.pedantic,
    }
