"""One line for each finding, as compilers print it."""

from __future__ import annotations

from handfast._check.output.text import first_line, last_line
from handfast._check.report import Report


def concise(report: Report, *, colour: bool = False, quiet: bool = False, **_: object) -> str:
    """Return a line for each finding, and the summary."""
    lines = [first_line(each, colour) for each in report.everything]
    return "".join(f"{line}\n" for line in lines) + last_line(report, quiet)
