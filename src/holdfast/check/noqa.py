"""Comments that take findings back: `# noqa`, `# noqa: HF201, HF3`, and `# holdfast: noqa` for a file.

A comment that names one of our codes and takes nothing back is itself reported. Codes of other
tools are left alone.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.check.finding import Edit, Finding, Fix, Place
from holdfast.check.selection import UNUSED_NOQA

__all__ = ["Comment", "comments", "sift"]

# Upper case only: where somebody says why, in plain words, no word is a code.
_CODE = r"(?:HF\d*|[A-Z]+\d+)\b"
_NOQA = re.compile(
    rf"#\s*(?P<file>(?i:holdfast\s*:\s*))?(?i:noqa)\b"
    rf"(?:\s*:\s*(?P<codes>{_CODE}(?:(?:\s*,\s*|\s+){_CODE})*))?"
)
_WORD = re.compile(_CODE)
_NAMES_US = re.compile(r"(?i:noqa)[^\n]*HF")


@dataclass(slots=True)
class Comment:
    """One comment. Without codes it is for all of them."""

    line: int
    column: int
    end_column: int
    codes: tuple[str, ...]
    for_file: bool
    text: str
    used: set[str] = field(default_factory=set)

    def takes(self, finding: Finding) -> bool:
        """Whether it takes this finding back."""
        if not self._is_beside(finding):
            return False
        fitting = {code for code in self.codes if finding.code.startswith(code)}
        self.used |= fitting
        return bool(fitting) or not self.codes

    def _is_beside(self, finding: Finding) -> bool:
        place = finding.place
        if self.for_file or self.line == place.line:
            return True
        # Below a long call, where formatters put it; a bare one there may mean anything.
        return bool(self.codes) and self.line == place.end_line


def comments(text: str) -> list[Comment]:
    """All of a file, in its order."""
    if "noqa" not in text.casefold():
        return []
    found: list[Comment] = []
    reader = io.StringIO(text, newline="").readline
    try:
        for token in tokenize.generate_tokens(reader):
            if token.type == tokenize.COMMENT:
                found += _in_comment(token)
    except (tokenize.TokenError, SyntaxError):
        pass  # the parser took it; what was read so far counts
    return found


def _in_comment(token: tokenize.TokenInfo) -> Iterator[Comment]:
    line, column = token.start
    for match in _NOQA.finditer(token.string):
        for_file = match["file"] is not None
        # A comment behind code is not for the whole file.
        if for_file and token.line[:column].strip():
            continue
        yield Comment(
            line,
            column + match.start() + 1,
            column + match.end() + 1,
            tuple(_WORD.findall(match["codes"] or "")),
            for_file,
            match.group(),
        )


def sift(
    path: str, text: str, findings: Iterable[Finding], is_run: Callable[[str], bool]
) -> list[Finding]:
    """The findings that no comment takes back, and one for each code that takes nothing back.

    `is_run` says whether a code, or all that begin so, was looked for: of the others nobody knows.
    """
    findings = list(findings)
    if not findings and not _NAMES_US.search(text):
        return []  # nothing to take back, and nothing that says so: not worth reading the tokens
    there = comments(text)
    if not there:
        return findings
    # Every comment is asked: two that take back the same finding are both in use.
    kept = [each for each in findings if not sum(comment.takes(each) for comment in there)]
    unused = [each for comment in there for each in _unused(path, text, comment, is_run)]
    return kept + [each for each in unused if not any(c.takes(each) for c in there)]


def _unused(
    path: str, text: str, comment: Comment, is_run: Callable[[str], bool]
) -> Iterator[Finding]:
    idle = [
        code
        for code in comment.codes
        if code.startswith("HF")
        and code not in comment.used
        and not UNUSED_NOQA.startswith(code)
        and is_run(code)
    ]
    if not idle:
        return
    place = Place(path, comment.line, comment.column, comment.line, comment.end_column)
    named = ", ".join(idle)
    message = f"This noqa takes nothing back: there is no {named} here"
    yield Finding(UNUSED_NOQA, message, place, fix=_removal(text, comment, idle, place))


def _removal(text: str, comment: Comment, idle: list[str], place: Place) -> Fix:
    left = [code for code in comment.codes if code not in idle]
    if left:
        head = comment.text.partition(":")[0]
        if comment.for_file:
            head = ":".join(comment.text.split(":")[:2])
        return Fix("Name only what is there", (Edit(place, f"{head}: {', '.join(left)}"),), True)
    line = re.split(r"\r\n|\r|\n", text)[comment.line - 1]
    behind = line[comment.end_column - 1 :]
    start = place.column
    if not behind.strip():
        start = len(line[: place.column - 1].rstrip()) + 1
        return _cut(place, start, len(line) + 1, "")
    # What stands behind it was said in the same comment, and stays one.
    return _cut(place, start, place.end_column, "" if behind.lstrip().startswith("#") else "#")


def _cut(place: Place, start: int, end: int, text: str) -> Fix:
    where = Place(place.path, place.line, start, place.line, end)
    return Fix("Remove the comment", (Edit(where, text),), True)
