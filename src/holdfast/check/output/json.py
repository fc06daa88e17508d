"""For programs: a list of objects, under keys that stay."""

from __future__ import annotations

import json as _json
from typing import Any

from holdfast.check.finding import Finding, Fix
from holdfast.check.report import Report

__all__ = ["json", "plain"]


def json(report: Report) -> str:
    """All findings as one list."""
    return _json.dumps([plain(each) for each in report.everything], indent=2) + "\n"


def plain(finding: Finding) -> dict[str, Any]:
    """One finding."""
    place = finding.place
    return {
        "code": finding.code,
        "message": finding.message,
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "related": [
            {
                "path": each.place.path,
                "line": each.place.line,
                "column": each.place.column,
                "message": each.message,
            }
            for each in finding.related
        ],
        "fix": None if finding.fix is None else _fix(finding.fix),
        "pedantic": finding.pedantic,
        "show": finding.show or None,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "message": fix.message,
        "safe": fix.safe,
        "edits": [
            {
                "path": edit.place.path,
                "line": edit.place.line,
                "column": edit.place.column,
                "end_line": edit.place.end_line,
                "end_column": edit.place.end_column,
                "text": edit.text,
            }
            for edit in fix.edits
        ],
    }
