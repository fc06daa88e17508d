"""What programs read: the keys stay."""

from __future__ import annotations

import json

from holdfast.check.output.json import json as as_json
from holdfast.check.report import Report
from tests.check.showing import REPORT


def test_a_finding_has_the_keys_that_are_promised() -> None:
    told = json.loads(as_json(REPORT))
    assert [each["code"] for each in told] == ["HF001", "HF301", "HF000"]
    assert told[1] == {
        "code": "HF301",
        "message": "The session is cleared while the task still reads it",
        "path": "src/bot.py",
        "line": 6,
        "column": 9,
        "end_line": 6,
        "end_column": 29,
        "related": [
            {"path": "src/bot.py", "line": 3, "column": 22, "message": "the task is born here"},
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
        "pedantic": False,
        "show": "pytest -k close --holdfast",
    }


def test_nothing_found_is_an_empty_list() -> None:
    assert json.loads(as_json(Report())) == []
