"""All rules on the examples of the catalogue: the wrong one has a finding, the right one has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from handfast._check.model.syntax.module import Module
from handfast._check.rules import RULES
from handfast._check.rules.rule import Rule
from handfast._check.source import parse
from handfast.catalogue import KINDS, BugKind, kind
from handfast.cli.app import app

RULED = {rule.code for rule in RULES}


def codes(source: str, *, pedantic: bool) -> set[str]:
    module = Module(parse("example.py", source.encode()), "example")
    return {
        finding.code
        for rule in RULES
        for finding in rule.check(module)
        if pedantic or not (rule.pedantic or finding.pedantic)
    }


@pytest.mark.parametrize("kind", [k for k in KINDS if k.code in RULED], ids=lambda kind: kind.code)
def test_the_wrong_example_has_a_finding_of_its_code(kind: BugKind) -> None:
    assert kind.code in codes(kind.wrong, pedantic=True)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_the_right_example_has_no_findings(kind: BugKind) -> None:
    assert codes(kind.right, pedantic=False) == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_file_of_a_rule_has_the_name_of_its_kind(rule: Rule) -> None:
    file = rule.check.__module__.rpartition(".")[2]
    assert file == f"{rule.code.lower()}_{kind(rule.code).name.replace('-', '_')}"


def test_the_guide_quotes_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/check.md").read_text()
    program = guide.split('```python title="bot.py"\n')[1].split("```")[0]
    quoted = guide.split('```text title="handfast check bot.py"\n')[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(program)
    assert (
        CliRunner().invoke(app, ["check", "--no-cache", "--jobs", "1", "bot.py"]).stdout == quoted
    )
