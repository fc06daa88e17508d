"""The JSON format has the documented keys."""

from __future__ import annotations

import json

from handfast._check.output import page_url
from handfast._check.output.json import json as as_json
from handfast._check.report import Report
from tests.check.sample_report import DROPPED, REPORT

PLACE = ("message", "path", "line", "column", "end_line", "end_column", "related", "fix")


def test_a_finding_has_the_documented_keys() -> None:
    shown = json.loads(as_json(REPORT))
    assert [each["code"] for each in shown] == ["HF001", "HF301", "HF000"]
    assert shown[1] == {
        "code": "HF301",
        "message": "The session is cleared while the task still reads it",
        "url": page_url("HF301"),
        "explain": "handfast rule HF301",
        "path": "src/bot.py",
        "line": 6,
        "column": 9,
        "end_line": 6,
        "end_column": 29,
        "related": [
            {"path": "src/bot.py", "line": 3, "column": 22, "message": "the task is created here"},
            {"path": "src/other bot.py", "line": 1, "column": 1, "message": "and read here"},
        ],
        "fix": {
            "message": "Cancel and join it first",
            "safe": False,
            "edits": [
                {
                    "path": "src/bot.py",
                    "line": 6,
                    "column": 9,
                    "end_line": 6,
                    "end_column": 29,
                    "text": "pass",
                }
            ],
        },
        "confidence": "high",
        "harm": "corruption",
        "pedantic": False,
        "count": 1,
        "places": [{key: shown[1][key] for key in PLACE}],
    }


def test_findings_of_one_cause_are_one_object_with_all_places() -> None:
    [one, other] = json.loads(as_json(DROPPED))
    assert (one["line"], one["count"], other["count"]) == (1, 3, 1)
    assert [each["line"] for each in one["places"]] == [1, 2, 3]
    assert [each["message"] for each in one["places"]] == ["drops `1`", "drops `2`", "drops `3`"]


def test_no_findings_are_an_empty_list() -> None:
    assert json.loads(as_json(Report())) == []
