"""Findings of several tools become one issue, and the issues are ranked; the outputs show them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handfast._audit.merge import Issue, advice, merge
from handfast._audit.observation import Evidence, Observation, Place, Tool, place_in
from handfast._audit.output.html import html
from handfast._audit.output.json import json as as_json
from handfast._audit.output.sarif import sarif
from handfast._audit.output.text import text
from handfast._audit.project import Project
from handfast._audit.report import AuditReport, LookedAt
from handfast._audit.suite.interpreter import Interpreter
from handfast.catalogue import KINDS

EVIDENCE: dict[Tool, Evidence] = {
    "check": Evidence.READ,
    "leaks": Evidence.SEEN,
    "explore": Evidence.FAILS,
}


def seen(tool: Tool, code: str, line: int | None, *related: int, message: str = "") -> Observation:
    return Observation(
        tool,
        code,
        message or f"{code} {line}",
        None if line is None else Place("a.py", line),
        frozenset(Place("a.py", each) for each in related),
        EVIDENCE[tool],
        command=f"show {code}",
    )


def lines(issues: list[Issue]) -> list[list[str]]:
    return [[each.message for each in issue.seen] for issue in issues]


def test_findings_with_the_line_of_creation_in_common_are_one_issue() -> None:
    issues = merge(
        [
            seen("check", "HF303", 12, 5),
            seen("check", "HF102", 30),
            seen("leaks", "HF102", 5),
            seen("leaks", "HF102", None),
        ]
    )
    assert lines(issues) == [["HF102 5", "HF303 12"], ["HF102 None"], ["HF102 30"]]
    assert issues[0].tools == ("leaks", "check")
    assert [each.code for each in issues[0].also] == ["HF303"]
    assert issues[0].place == Place("a.py", 5)


def test_a_finding_can_join_two_groups() -> None:
    one, two = seen("check", "HF101", 1), seen("check", "HF111", 9)
    assert len(merge([one, two])) == 2
    assert len(merge([one, two, seen("check", "HF201", 4, 1, 9)])) == 1


def test_the_rank_is_tools_then_evidence_then_harm() -> None:
    both = [seen("check", "HF112", 1), seen("leaks", "HF721", 1)]
    found = [
        seen("check", "HF101", 2),
        seen("check", "HF201", 3),
        seen("leaks", "HF721", 4),
        seen("explore", "HF441", 5),
        seen("leaks", "HF102", 6),
        *both,
    ]
    ranked = [issue.place.line for issue in merge(found) if issue.place]
    assert ranked == [1, 5, 6, 4, 3, 2]


@pytest.mark.parametrize("code", [each.code for each in KINDS])
def test_each_kind_has_a_harm_and_an_advice(code: str) -> None:
    issue = Issue((seen("check", code, 1),))
    assert issue.harm in ("lost data", "hang", "leak", "noise")
    assert advice(code)


def test_an_advice_of_a_family_is_not_given_where_it_does_not_fit() -> None:
    assert advice("HF424") != advice("HF441")
    assert advice("HF424").startswith("cancel and await the loop's tasks, stop the loop")
    assert advice("HF122") == "await the coroutine, or start a task with it and keep the task"


def test_what_a_test_leaks_itself_is_less_harmful() -> None:
    own = Observation("leaks", "HF601", "", Place("tests/test_a.py", 1), evidence=Evidence.SEEN)
    ranked = merge([own, seen("leaks", "HF102", 1)])
    assert [each.harm for each in ranked] == ["leak", "in the tests only"]


def test_a_place_is_relative_to_the_project(tmp_path: Path) -> None:
    assert place_in("acquired at a.py:64 in Pool.get", tmp_path) == Place("a.py", 64)
    assert place_in(f"{tmp_path}/b/c.py:2 in f", tmp_path) == Place("b/c.py", 2)
    assert place_in("/usr/lib/x.py:2 in f", tmp_path) == Place("/usr/lib/x.py", 2)
    assert place_in("<Task pending>", tmp_path) is None


# --- outputs -------------------------------------------------------------------------------------


def report_of(root: Path, *found: Observation, notes: int = 0, plugin: bool = True) -> AuditReport:
    return AuditReport(
        Project(root, ["src"], test_files=2),
        Interpreter("python", "venv", "3.13.0", has_plugin=plugin),
        merge(found),
        LookedAt(files=1, tests=2),
        [f"note {number}" for number in range(notes)],
    )


POSSIBLE = Observation(
    "explore", "HF441", "perhaps", Place("t.py", 1), evidence=Evidence.POSSIBLE, command="replay"
)


def test_the_text_without_findings_says_what_was_looked_at(tmp_path: Path) -> None:
    shown = text(report_of(tmp_path, POSSIBLE, notes=14)).splitlines()
    assert shown[:4] == [
        "Nothing found in 0 s.",
        "Looked at: 1 file (0 places where tasks are created, 0 close methods), 2 tests (0 tasks "
        "created), 0 schedules of 0 async tests.",
        "Not confirmed on asyncio's own loop, and not counted: 1 (--json FILE has them).",
        "Not checked:",
    ]
    assert shown[15:17] == ["  note 11", "  and 2 more (--json FILE has all)"]


def test_the_text_shows_ten_issues(tmp_path: Path) -> None:
    found = [seen("leaks", "HF102", line) for line in range(1, 13)]
    report = report_of(tmp_path, *found, seen("check", "HF303", 99, 1), plugin=False)
    report.interrupted, report.pedantic = True, 3
    shown = text(report)
    assert shown.startswith(
        " 1. a.py:1: HF102 task-left-over\n"
        "    HF102 1\n"
        "    also HF303, by check: HF303 99\n"
        "    harm: leak; found by leaks and check\n"
        "    show it:    show HF102\n"
        "    what to do: keep the task, and in the method that closes its owner cancel it and "
        "await it (handfast explain HF102)\n"
    )
    assert "\n10. " in shown
    assert "\n11. " not in shown
    assert "and 2 more (--json FILE or --html FILE has all)\nFound 12 problems in 0 s.\n" in shown
    assert "Interrupted: this is the report so far.\n" in shown
    assert "Left out: 3 findings of `handfast check --pedantic`.\n" in shown
    assert "pip install 'handfast[test]'" in shown
    assert "    pytest --handfast-write-baseline handfast-leaks.json\n" in shown
    report.project.test_files = 0
    report.project.sources = ["my app"]
    shown = text(report).partition("Next steps")[2]
    assert "    handfast check 'my app' --write-baseline handfast-check.json\n" in shown
    assert "pytest --handfast" not in shown


def test_json_has_everything(tmp_path: Path) -> None:
    found = [seen("leaks", "HF102", None), seen("check", "HF303", 9), POSSIBLE]
    data = json.loads(as_json(report_of(tmp_path, *found, notes=1), version="1.2"))
    assert (data["handfast"], data["project"]) == ("1.2", str(tmp_path))
    first, second = data["findings"]
    assert (first["code"], first["path"], first["evidence"]) == ("HF102", None, "seen")
    assert (second["line"], second["show"], second["harm"]) == (9, "show HF303", "leak")
    assert second["seen"][0]["tool"] == "check"
    assert data["not_confirmed"][0]["message"] == "perhaps"
    assert data["not_checked"] == ["note 0"]


def test_sarif_has_the_lines_relative_to_the_present_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = [seen("leaks", "HF102", 5), seen("check", "HF303", 9, 5), seen("leaks", "HF701", None)]
    (run,) = json.loads(sarif(report_of(tmp_path / "app", *found), version="1.2"))["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == "HF102"
    assert result["message"]["text"].endswith("(found by leaks and check)\n\nShow it: show HF102")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "app/a.py", "uriBaseId": "SRCROOT"}
    assert place["region"]["startLine"] == 5
    assert len(result["relatedLocations"]) == 1
    (run,) = json.loads(sarif(report_of(Path("/other"), found[0]), version="1.2"))["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "file:///other/a.py"}


def test_html_escapes_what_it_shows(tmp_path: Path) -> None:
    message = "<script>{{rows}}"
    page = html(report_of(tmp_path, seen("leaks", "HF102", 1, message=message)), version="1.2")
    assert "&lt;script&gt;{{rows}}" in page
    assert page.count("<script>") == 1
    assert '<a href="#finding-1">' in page
    assert "<li>none</li>" in page
