"""The report as JSON: everything that was found, without the limit of the terminal."""

from __future__ import annotations

import json as _json
from dataclasses import asdict
from typing import Any

from handfast._audit.merge import Issue
from handfast._audit.observation import Observation, Place
from handfast._audit.report import AuditReport


def json(report: AuditReport, *, version: str) -> str:
    """Return the report as one object. Published keys keep their meaning."""
    return _json.dumps(plain(report, version), indent=2) + "\n"


def plain(report: AuditReport, version: str) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        "handfast": version,
        "project": str(report.project.root),
        "python": report.interpreter.path,
        "seconds": round(report.seconds, 1),
        "interrupted": report.interrupted,
        "looked_at": asdict(report.looked_at),
        "findings": [_issue(each) for each in report.sure],
        "not_confirmed": [_issue(each) for each in report.possible],
        "pedantic": report.pedantic,
        "not_checked": report.notes,
    }


def _issue(issue: Issue) -> dict[str, Any]:
    return {
        "code": issue.code,
        "name": issue.name,
        **_place(issue.place),
        "message": issue.first.message,
        "harm": issue.harm,
        "evidence": issue.evidence.name.lower(),
        "tools": issue.tools,
        "show": issue.first.command,
        "what_to_do": issue.fix,
        "seen": [_observation(each) for each in issue.seen],
    }


def _observation(seen: Observation) -> dict[str, Any]:
    return {
        "tool": seen.tool,
        "code": seen.code,
        **_place(seen.place),
        "message": seen.message,
        "when": seen.when,
        "show": seen.command,
        "tests": seen.tests,
        "detail": seen.detail,
    }


def _place(place: Place | None) -> dict[str, Any]:
    return {"path": place and place.path, "line": place and place.line}
