"""A program, mended as `--unsafe-fixes` mends it, and looked at again."""

from __future__ import annotations

from pathlib import Path

from holdfast.check import check
from holdfast.check.finding import Finding
from holdfast.check.fixing import mend, write

__all__ = ["findings", "mended", "suggestions"]

PASSES = 5
# Errors of tasks that a cancel has hidden: it did so before, but that is said of those who join.
_SEEN_ONCE_JOINED = ("HF602",)


def findings(path: Path, code: str) -> list[Finding]:
    report = check([path], select=[code])
    assert not report.broken
    return list(report.findings)


def suggestions(path: Path, source: str, code: str) -> list[Finding]:
    """What is found, and can be mended."""
    path.write_bytes(source.encode())
    found = findings(path, code)
    assert found, "there is nothing to mend"
    return [each for each in found if each.fix is not None]


def mended(path: Path, source: str, code: str) -> str:
    """The text after all fixes. It compiles, nothing of that code is found in it any more, and by
    default nothing else either that was not there before."""
    path.write_bytes(source.encode())
    before = {each.code for each in check([path]).findings} | {code, *_SEEN_ONCE_JOINED}
    assert findings(path, code), "there is nothing to mend"
    for _ in range(PASSES):
        for each in mend(findings(path, code), unsafe=True):
            write(each)
    after = path.read_bytes().decode()
    compile(after, str(path), "exec")
    assert findings(path, code) == [], after
    new = [each for each in check([path]).findings if each.code not in before]
    assert new == [], after
    return after
