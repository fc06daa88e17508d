"""A Code Quality report of GitLab.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

from handfast._check.engine.file_facts import digest
from handfast._check.finding import Finding
from handfast._check.output import explain_line
from handfast._check.report import Report
from handfast._check.settings.selection import BROKEN


def gitlab(report: Report, **_: object) -> str:
    """Return a JSON list."""
    seen: Counter[str] = Counter()
    return json.dumps([_issue(each, seen) for each in report.everything], indent=2) + "\n"


def _issue(finding: Finding, seen: Counter[str]) -> dict[str, Any]:
    place = finding.place
    # GitLab wants a path from the root of the repository, and the job begins there.
    path = place.path.removeprefix("./").replace(os.sep, "/")
    return {
        "description": f"{finding.code}: {finding.message}",
        "check_name": finding.code,
        "fingerprint": _fingerprint(finding, path, seen),
        "severity": _severity(finding),
        "location": {
            "path": path,
            "positions": {
                "begin": {"line": place.line, "column": place.column},
                "end": {"line": place.end_line, "column": place.end_column},
            },
        },
        "content": {"body": f"`{explain_line(finding.code)}` explains the code."},
    }


def _severity(finding: Finding) -> str:
    return "critical" if finding.code == BROKEN else "minor" if finding.pedantic else "major"


def _fingerprint(finding: Finding, path: str, seen: Counter[str]) -> str:
    """Return the same for the same finding after an edit above; each is used once."""
    parts = (finding.code, path, finding.message)
    plain = digest(*(part.encode("utf-8", "surrogateescape") for part in parts))
    seen[plain] += 1
    return plain if seen[plain] == 1 else digest(plain.encode(), str(seen[plain]).encode())
