"""The examples of the catalogue under all rules together: the wrong one is found under its code, and
the right one gives nobody anything to say. And the guide shows what is printed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.catalogue import KINDS, BugKind
from holdfast.check.model.module import Module
from holdfast.check.rules import RULES
from holdfast.check.source import parse
from holdfast.cli.app import app

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
def test_the_wrong_example_is_found_under_its_code(kind: BugKind) -> None:
    assert kind.code in codes(kind.wrong, pedantic=True)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_nobody_has_anything_to_say_about_the_right_example(kind: BugKind) -> None:
    assert codes(kind.right, pedantic=False) == set()


def test_the_guide_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/check.md").read_text()
    program = guide.split('```python title="bot.py"\n')[1].split("```")[0]
    told = guide.split('```text title="holdfast check bot.py"\n')[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(program)
    assert CliRunner().invoke(app, ["check", "--no-cache", "--jobs", "1", "bot.py"]).stdout == told
