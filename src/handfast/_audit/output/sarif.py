"""The report as SARIF, in the format of `handfast check --format sarif`."""

from __future__ import annotations

import os
from pathlib import Path

from handfast._audit.merge import Issue
from handfast._audit.observation import Place
from handfast._audit.report import AuditReport
from handfast._check.finding import Finding, Related, Span
from handfast._check.output.sarif import sarif as checker_sarif
from handfast._check.report import Report


def sarif(report: AuditReport, *, version: str) -> str:
    """Return the issues that have a line, as one run."""
    root = report.project.root
    findings = [_finding(each, each.place, root) for each in report.sure if each.place]
    return checker_sarif(Report(tuple(findings)), version=version)


def _finding(issue: Issue, place: Place, root: Path) -> Finding:
    others = sorted({spot for seen in issue.seen for spot in seen.places} - {place})
    related = tuple(Related(_span(each, root), "related line") for each in others)
    message = f"{issue.first.message} (found by {' and '.join(issue.tools)})"
    message += f"\n\nShow it: {issue.first.command}"
    return Finding(issue.code, message, _span(place, root), related)


def _span(place: Place, root: Path) -> Span:
    # SARIF's paths are relative to the present folder, those of the report to the project.
    path = root / place.path
    shown = os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
    return Span(shown, place.line, 1, place.line, 1)
