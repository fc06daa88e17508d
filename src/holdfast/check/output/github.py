"""For GitHub Actions: annotations beside the lines of a pull request.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from holdfast.check.finding import Finding
from holdfast.check.report import Report

__all__ = ["github"]


def github(report: Report) -> str:
    """One command a line."""
    return "".join(f"{_command(each)}\n" for each in report.everything)


def _command(finding: Finding) -> str:
    place = finding.place
    level = "notice" if finding.pedantic else "error"
    where = [f"file={_property(place.path)}", f"line={place.line}"]
    # A column counts only within one line.
    if place.end_line == place.line:
        where += [f"col={place.column}", f"endColumn={place.end_column}"]
    where += [f"endLine={place.end_line}", f"title={_property(f'holdfast ({finding.code})')}"]
    told = f"{place.path}:{place.line}:{place.column}: {finding.code} {finding.message}"
    others = "".join(
        f"\n{each.place.path}:{each.place.line}: {each.message}" for each in finding.related
    )
    show = f"\nshow it: {finding.show}" if finding.show else ""
    return f"::{level} {','.join(where)}::{_data(told + others + show)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
