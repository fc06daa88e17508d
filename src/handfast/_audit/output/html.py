"""The report as one self-contained HTML page: a table that can be sorted, and each finding in full."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files

from handfast._audit.merge import Issue
from handfast._audit.report import AuditReport

_COLUMNS = ("#", "place", "kind", "harm", "evidence", "found by")


def html(report: AuditReport, *, version: str) -> str:
    """Return the page."""
    issues = [*report.sure, *report.possible]
    parts = {
        "title": escape(f"handfast audit: {report.project.root.name}"),
        "summary": escape(_summary(report, version)),
        "columns": "".join(f"<th>{each}</th>" for each in _COLUMNS),
        "rows": "\n".join(_row(number, each) for number, each in enumerate(issues, start=1)),
        "details": "\n".join(_detail(number, each) for number, each in enumerate(issues, start=1)),
        "notes": "".join(f"<li>{escape(note)}</li>" for note in report.notes) or "<li>none</li>",
    }
    page = files("handfast._audit.output").joinpath("page.html").read_text(encoding="utf-8")
    # Split before filling in, so that a `{{` inside a part is not taken for a slot.
    first, *rest = page.split("{{")
    return first + "".join(
        parts[slot] + tail for slot, _, tail in (piece.partition("}}") for piece in rest)
    )


def _summary(report: AuditReport, version: str) -> str:
    found = f"{len(report.sure)} found in {report.seconds:.0f} s"
    return f"{found}. Looked at: {report.looked_at.sentence()}. handfast {version}."


def _row(number: int, issue: Issue) -> str:
    kind = f"{issue.code} {issue.name}"
    place = str(issue.place or "an unknown line")
    cells = (place, kind, issue.harm, issue.evidence.name.lower(), ", ".join(issue.tools))
    shown = "".join(f"<td>{escape(each)}</td>" for each in cells)
    key = f'<td data-key="{number:06}"><a href="#finding-{number}">{number}</a></td>'
    return f"<tr>{key}{shown}</tr>"


def _detail(number: int, issue: Issue) -> str:
    title = f"{number}. {issue.code} {issue.name}: {issue.first.message}"
    return "\n".join(
        [
            f'<section id="finding-{number}"><h2>{escape(title)}</h2>',
            f"<p>What to do: {escape(issue.fix)}</p>",
            *_seen(issue),
            "</section>",
        ]
    )


def _seen(issue: Issue) -> Iterator[str]:
    for seen in issue.seen:
        place = f" at {seen.place}" if seen.place else ""
        yield f"<h3>{escape(f'{seen.tool}: {seen.code}{place}')}</h3>"
        yield f"<p><code>{escape(seen.command)}</code></p>"
        yield f"<pre>{escape(seen.detail)}</pre>"
