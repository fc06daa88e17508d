"""Applies unsafe fixes to a program, and checks the result again."""

from __future__ import annotations

from pathlib import Path

from handfast._check.finding import Finding
from handfast._check.fixes.apply_fixes import apply_fixes, write
from handfast.check import check

__all__ = ["findings", "fixed", "suggestions"]

PASSES = 5
# These rules report only code that joins a task, so a fix that adds the join may cause a finding.
_REPORTED_ONCE_JOINED = ("HF602",)


def findings(path: Path, code: str) -> list[Finding]:
    report = check([path], select=[code])
    assert not report.broken
    return list(report.findings)


def suggestions(path: Path, source: str, code: str) -> list[Finding]:
    """Return the findings that have a fix."""
    path.write_bytes(source.encode())
    found = findings(path, code)
    assert found, "there are no findings"
    return [each for each in found if each.fix is not None]


def fixed(path: Path, source: str, code: str) -> str:
    """Return the text after all fixes. Check that it compiles, has no findings of that code, and no
    new findings of the default rules."""
    path.write_bytes(source.encode())
    before = {each.code for each in check([path]).findings} | {code, *_REPORTED_ONCE_JOINED}
    assert findings(path, code), "there are no findings"
    for _ in range(PASSES):
        text = path.read_bytes().decode()
        found = findings(path, code)
        texts = {each.place.path: text for each in found}
        for each in apply_fixes(found, texts, unsafe=True):
            write(each)
    after = path.read_bytes().decode()
    compile(after, str(path), "exec")
    assert findings(path, code) == [], after
    new = [each for each in check([path]).findings if each.code not in before]
    assert new == [], after
    return after
