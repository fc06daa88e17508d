"""JUnit XML: a test suite for each file, and a failed test case for each finding."""

from __future__ import annotations

from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from handfast._check.finding import Finding
from handfast._check.output import explain_line, printable
from handfast._check.report import Report


def junit(report: Report, **_: object) -> str:
    """Return the whole document."""
    everything = report.everything
    suites = [
        _suite(path, list(there))
        for path, there in groupby(everything, lambda each: each.place.path)
    ]
    # A server reports a file without any test case as an error.
    passed = '  <testsuite name="handfast" tests="1"><testcase name="no findings"/></testsuite>\n'
    count = len(everything)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="handfast" tests="{count or 1}" failures="{count}" errors="0">\n'
        f"{''.join(suites) or passed}</testsuites>\n"
    )


def _suite(path: str, findings: list[Finding]) -> str:
    count = len(findings)
    head = f'  <testsuite name={_quoted(path)} tests="{count}" failures="{count}" errors="0">\n'
    return f"{head}{''.join(map(_case, findings))}  </testsuite>\n"


def _case(finding: Finding) -> str:
    place = finding.place
    rows = [
        f"{place.path}:{place.line}:{place.column}: {finding.code} {finding.message}",
        *(f"{each.place.path}:{each.place.line}: {each.message}" for each in finding.related),
        f"more: {explain_line(finding.code)}",
    ]
    name = f"{finding.code} line {place.line}, column {place.column}"
    body = escape("\n".join(map(printable, rows)))
    return (
        f'    <testcase name={_quoted(name)} classname={_quoted(place.path)} line="{place.line}">\n'
        f"      <failure message={_quoted(finding.message)}>{body}</failure>\n"
        "    </testcase>\n"
    )


def _quoted(text: str) -> str:
    # XML has no control characters and no surrogates, not even escaped.
    return quoteattr(printable(text))
