"""The Code Quality report of GitLab."""

from __future__ import annotations

import json

from handfast._check.output.gitlab import gitlab
from handfast._check.report import Report
from tests.check.sample_report import FINDING, REPORT


def test_an_issue_has_what_gitlab_needs() -> None:
    unused, issue, broken = json.loads(gitlab(REPORT))
    fingerprint = issue.pop("fingerprint")
    assert issue == {
        "description": "HF301: The session is cleared while the task still reads it",
        "check_name": "HF301",
        "severity": "major",
        "location": {
            "path": "src/bot.py",
            "positions": {"begin": {"line": 6, "column": 9}, "end": {"line": 6, "column": 29}},
        },
        "content": {"body": "`handfast rule HF301` explains the code."},
    }
    assert broken["severity"] == "critical"
    assert len({fingerprint, unused["fingerprint"], broken["fingerprint"]}) == 3


def test_equal_findings_have_different_fingerprints() -> None:
    issues = json.loads(gitlab(Report((FINDING, FINDING, FINDING))))
    assert len({each["fingerprint"] for each in issues}) == 3


def test_no_findings_are_an_empty_list() -> None:
    assert json.loads(gitlab(Report())) == []
