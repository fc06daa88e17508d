"""The report for a terminal: at most ten issues, then what was looked at, and the next steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from handfast._audit.merge import Issue
from handfast._audit.report import AuditReport
from handfast._missing_extra import install_line

MOST = 10
_MOST_NOTES = 12
_MOST_ALSO = 2
# The message of an assertion may be long.
_WIDTH = 300


def text(report: AuditReport) -> str:
    """The whole report."""
    return "\n".join([*_issues(report), *_looked_at(report), *_next_steps(report)]) + "\n"


def _issues(report: AuditReport) -> Iterator[str]:
    for number, issue in enumerate(report.sure[:MOST], start=1):
        yield from _issue(number, issue)
        yield ""
    found = len(report.sure)
    if found > MOST:
        yield f"and {found - MOST} more (--json FILE or --html FILE has all)"
    if found:
        yield f"Found {found} {'problem' if found == 1 else 'problems'} in {report.seconds:.0f} s."
    else:
        yield f"Nothing found in {report.seconds:.0f} s."


def _issue(number: int, issue: Issue) -> Iterator[str]:
    first = issue.first
    tools = " and ".join(issue.tools)
    place = str(issue.place or "an unknown line")
    yield f"{number:>2}. {place}: {issue.code} {issue.name}"
    yield f"    {first.message[:_WIDTH]}"
    if first.when:
        yield f"    when: {first.when}"
    for other in list(issue.also)[:_MOST_ALSO]:
        yield f"    also {other.code}, by {other.tool}: {other.message}"[:_WIDTH]
    yield f"    harm: {issue.harm}; found by {tools}"
    yield f"    show it:    {first.command}"
    yield f"    what to do: {issue.fix} (handfast explain {issue.code})"


def _looked_at(report: AuditReport) -> Iterator[str]:
    yield f"Looked at: {report.looked_at.sentence()}."
    if report.interrupted:
        yield "Interrupted: this is the report so far."
    if report.possible:
        count = len(report.possible)
        yield f"Not confirmed on asyncio's own loop, and not counted: {count} (--json FILE has them)."
    if report.pedantic:
        more = "1 finding" if report.pedantic == 1 else f"{report.pedantic} findings"
        yield f"Left out: {more} of `handfast check --pedantic`."
    if report.notes:
        yield "Not checked:"
        yield from (f"  {note}" for note in report.notes[:_MOST_NOTES])
    if len(report.notes) > _MOST_NOTES:
        yield f"  and {len(report.notes) - _MOST_NOTES} more (--json FILE has all)"


def _next_steps(report: AuditReport) -> Iterator[str]:
    sources = shlex.join(report.project.sources) or "."
    has_tests = report.project.test_files > 0
    yield f"Next steps, in {report.project.root}:"
    if has_tests and not report.interpreter.has_plugin:
        yield f"  in the project's environment, for `{report.pytest} --handfast`: {install_line('test')}"
    yield "  let only new problems fail:"
    yield f"    handfast check {sources} --write-baseline handfast-check.json"
    if has_tests:
        yield f"    {report.pytest} --handfast-write-baseline handfast-leaks.json"
    yield "  in CI:"
    yield f"    handfast check {sources} --baseline handfast-check.json"
    if has_tests:
        yield f"    {report.pytest} --handfast --handfast-baseline handfast-leaks.json"
    yield "  before each commit: the hook `handfast-check` of pre-commit (docs/guides/ci.md)"
