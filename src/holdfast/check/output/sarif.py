"""For code scanning: SARIF 2.1.0.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from holdfast.catalogue import KINDS
from holdfast.check.facts import digest
from holdfast.check.finding import Edit, Finding, Fix, Place
from holdfast.check.report import Report
from holdfast.check.selection import BROKEN, UNUSED_NOQA

__all__ = ["sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"
_OWN = {
    BROKEN: ("file-not-checked", "A file could not be read or parsed."),
    UNUSED_NOQA: ("noqa-unused", "A noqa comment takes nothing back."),
}


def sarif(report: Report, version: str) -> str:
    """One run of the tool, which is of this version."""
    everything = report.everything
    codes = sorted({finding.code for finding in everything})
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "holdfast",
                        "semanticVersion": version,
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_ROOT: {"uri": Path.cwd().as_uri().rstrip("/") + "/"}},
                "results": [_result(each, codes.index(each.code)) for each in everything],
                "invocations": [
                    {
                        # Whether the tool did its work, not whether it found anything.
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
    for kind in KINDS:
        if kind.code == code:
            return {
                "id": code,
                "name": kind.name,
                "shortDescription": {"text": kind.summary},
                "fullDescription": {"text": kind.why},
                "help": {"text": f"{kind.why}\n\nWrong:\n\n{kind.wrong}\nRight:\n\n{kind.right}"},
                "properties": {"tags": [kind.family]},
            }
    name, summary = _OWN.get(code, (code, code))
    return {"id": code, "name": name, "shortDescription": {"text": summary}}


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    level = "error" if finding.code == BROKEN else "note" if finding.pedantic else "warning"
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": _message(finding)},
        "locations": [_location(finding.place)],
        "partialFingerprints": {"holdfast/v1": _fingerprint(finding)},
    }
    if finding.related:
        result["relatedLocations"] = [
            _location(each.place) | {"id": number, "message": {"text": each.message}}
            for number, each in enumerate(finding.related)
        ]
    if finding.fix is not None and finding.fix.edits:
        result["fixes"] = [_fix(finding.fix)]
    return result


def _message(finding: Finding) -> str:
    return f"{finding.message}\n\nShow it: {finding.show}" if finding.show else finding.message


def _fingerprint(finding: Finding) -> str:
    # Without the line: the same finding, moved, is the same.
    path = _uri(finding.place.path)
    return digest(finding.code.encode(), path.encode(), finding.message.encode())


def _location(place: Place) -> dict[str, Any]:
    return {
        "physicalLocation": {"artifactLocation": _artifact(place.path), "region": _region(place)}
    }


def _artifact(path: str) -> dict[str, Any]:
    uri = _uri(path)
    return {"uri": uri} if uri.startswith("file:") else {"uri": uri, "uriBaseId": _ROOT}


def _uri(path: str) -> str:
    if os.path.isabs(path):
        return Path(path).as_uri()
    return quote(path.replace(os.sep, "/"), safe="/")


def _region(place: Place) -> dict[str, int]:
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
            yield {
                "deletedRegion": _region(edit.place),
                "insertedContent": {"text": edit.text},
            }
