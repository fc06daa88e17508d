"""SARIF 2.1.0, for code scanning.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from handfast._check.engine.file_facts import digest
from handfast._check.finding import Edit, Finding, Fix, Span
from handfast._check.output import explain_line, page_url
from handfast._check.report import Report
from handfast._check.settings.selection import BROKEN, CHECKER_CODES
from handfast.catalogue import kind

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"


def sarif(report: Report, *, version: str, **_: object) -> str:
    """Return the report as one run of this version of the tool."""
    everything = report.everything
    codes = sorted({finding.code for finding in everything})
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "handfast",
                        "semanticVersion": version,
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_ROOT: {"uri": Path.cwd().as_uri().rstrip("/") + "/"}},
                "results": [_result(each, codes.index(each[0].code)) for each in report.causes],
                "invocations": [
                    {
                        # Whether the tool has worked, not whether it found anything.
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {"level": "warning", "message": {"text": f"{path}: not checked"}}
                            for path in report.not_checked
                        ],
                    }
                ],
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    if code in CHECKER_CODES:
        name, summary = CHECKER_CODES[code]
        return {"id": code, "name": name, "shortDescription": {"text": summary}}
    bug = kind(code)
    return {
        "id": code,
        "name": bug.name,
        "helpUri": page_url(code),
        "shortDescription": {"text": bug.summary},
        "fullDescription": {"text": bug.why},
        "help": {
            "text": f"{bug.why}\n\nWrong:\n\n{bug.wrong}\nRight:\n\n{bug.right}"
            f"\n{explain_line(code)}"
        },
        "properties": {"tags": [bug.family, bug.harm]},
    }


# From 0 to 100, how much it matters that a result is looked at.
_RANKS = {"corruption": 90.0, "lost work": 80.0, "hang": 70.0, "leak": 50.0, "noise": 10.0}


def _result(findings: tuple[Finding, ...], rule: int) -> dict[str, Any]:
    """Return the result for one cause: its first place, and the others as related locations."""
    finding = findings[0]
    level = "error" if finding.code == BROKEN else "note" if finding.pedantic else "warning"
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": _message(findings)},
        "locations": [_location(finding.place)],
        "partialFingerprints": {"handfast/v1": _fingerprint(finding)},
    }
    if finding.harm is not None:
        result["rank"] = _RANKS[finding.harm] / (1 if finding.confidence == "high" else 2)
        result["properties"] = {"confidence": finding.confidence, "harm": finding.harm}
    if len(findings) > 1:
        result["occurrenceCount"] = len(findings)
    related = [(each.place, each.message) for each in finding.related]
    related += [(each.place, f"the same: {each.message}") for each in findings[1:]]
    if related:
        result["relatedLocations"] = [
            _location(place) | {"id": number, "message": {"text": message}}
            for number, (place, message) in enumerate(related)
        ]
    if finding.fix is not None and finding.fix.edits:
        result["fixes"] = [_fix(finding.fix)]
    return result


def _message(findings: tuple[Finding, ...]) -> str:
    finding = findings[0]
    others = f"The same in {len(findings) - 1:,} more places." if len(findings) > 1 else ""
    return "\n\n".join(filter(None, (finding.message, others)))


def _fingerprint(finding: Finding) -> str:
    # Without the line, so that it survives an edit above.
    path = _uri(finding.place.path)
    return digest(finding.code.encode(), path.encode(), finding.message.encode())


def _location(place: Span) -> dict[str, Any]:
    return {
        "physicalLocation": {"artifactLocation": _artifact(place.path), "region": _region(place)}
    }


def _artifact(path: str) -> dict[str, Any]:
    uri = _uri(path)
    return {"uri": uri} if uri.startswith("file:") else {"uri": uri, "uriBaseId": _ROOT}


def _uri(path: str) -> str:
    if os.path.isabs(path):
        return Path(path).as_uri()
    return quote(os.fsencode(path.replace(os.sep, "/")), safe="/")


def _region(place: Span) -> dict[str, int]:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    paths = dict.fromkeys(edit.place.path for edit in fix.edits)
    return {
        "description": {"text": fix.message},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(path),
                "replacements": list(_replacements(fix.edits, path)),
            }
            for path in paths
        ],
    }


def _replacements(edits: Iterable[Edit], path: str) -> Iterable[dict[str, Any]]:
    for edit in edits:
        if edit.place.path == path:
            yield {"deletedRegion": _region(edit.place), "insertedContent": {"text": edit.text}}
