"""The findings of each file below its name."""

from __future__ import annotations

from itertools import groupby

from handfast._check.output.text import first_line, last_line, painted_path
from handfast._check.report import Report


def grouped(report: Report, *, colour: bool = False, quiet: bool = False, **_: object) -> str:
    """Return a block for each file, and the summary."""
    rows: list[str] = []
    for path, there in groupby(report.everything, key=lambda finding: finding.place.path):
        rows += [f"{painted_path(path, colour)}:"]
        rows += [f"  {first_line(each, colour, path=False)}" for each in there]
        rows += [""]
    return "".join(f"{row}\n" for row in rows) + last_line(report, quiet)
