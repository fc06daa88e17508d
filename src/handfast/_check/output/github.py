"""For GitHub Actions: annotations beside the lines of a pull request.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from handfast._check.finding import Finding
from handfast._check.output import explain_line, printable
from handfast._check.report import Report
from handfast._github import Level, annotation


def github(report: Report, **_: object) -> str:
    """One command a line."""
    return "".join(f"{_command(each)}\n" for each in report.everything)


def _command(finding: Finding) -> str:
    place = finding.place
    level: Level = "notice" if finding.pedantic else "error"
    where: dict[str, object] = {"file": printable(place.path), "line": place.line}
    # A column counts only within one line.
    if place.end_line == place.line:
        where |= {"col": place.column, "endColumn": place.end_column}
    where |= {"endLine": place.end_line, "title": f"handfast ({finding.code})"}
    first = f"{printable(place.path)}:{place.line}:{place.column}: {finding.code} {finding.message}"
    others = "".join(
        f"\n{printable(each.place.path)}:{each.place.line}: {each.message}"
        for each in finding.related
    )
    more = f"\nmore: {explain_line(finding.code)}"
    return annotation(level, where, first + others + more)
