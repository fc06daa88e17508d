"""Comments that suppress findings: `# noqa`, `# noqa: HF201, HF3`, and `# handfast: noqa` for a file.

A comment that names a code of handfast and suppresses nothing is itself reported. Codes of other
tools are ignored.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from handfast._check.finding import Edit, Finding, Fix, Span
from handfast._check.settings.selection import UNUSED_NOQA
from handfast._check.source import lines_in

# Upper case only, so that no word of an explanation is taken for a code.
_CODE = r"(?:HF\d*|[A-Z]+\d+)\b"
_NOQA = re.compile(
    rf"#\s*(?P<file>(?i:handfast\s*:\s*))?(?i:noqa)\b"
    rf"(?:\s*:\s*(?P<codes>{_CODE}(?:(?:\s*,\s*|\s+){_CODE})*))?"
)
_WORD = re.compile(_CODE)
# Atomic, so that it looks at each line once.
_NAMES_HANDFAST = re.compile(r"^(?>[^\n]*?(?i:noqa))[^\n]*?HF", re.MULTILINE)

IsRun = Callable[[str], bool]
"""Whether all rules of a code or prefix were run."""


@dataclass(slots=True)
class Comment:
    """One `noqa` comment; without codes it suppresses all of them."""

    line: int
    column: int
    end_column: int
    codes: tuple[str, ...]
    for_file: bool
    text: str
    used: set[str] = field(default_factory=set)

    def suppresses(self, finding: Finding) -> bool:
        """Whether it suppresses this finding; remembers the codes that do."""
        if not self._is_for(finding):
            return False
        fitting = {code for code in self.codes if finding.code.startswith(code)}
        self.used |= fitting
        return bool(fitting) or not self.codes

    def _is_for(self, finding: Finding) -> bool:
        place = finding.place
        if self.for_file or self.line == place.line:
            return True
        # Formatters move a comment to the end of a long call. A bare one there may mean another line.
        return bool(self.codes) and self.line == place.end_line


def comments(text: str) -> list[Comment]:
    """Return the `noqa` comments of a file, in order."""
    if "noqa" not in text.casefold():
        return []
    found: list[Comment] = []
    reader = io.StringIO(text, newline="").readline
    try:
        for token in tokenize.generate_tokens(reader):
            if token.type == tokenize.COMMENT:
                found += _in_comment(token)
    except (tokenize.TokenError, SyntaxError):
        pass  # the parser has accepted the file: use the comments up to here
    return found


def _in_comment(token: tokenize.TokenInfo) -> Iterator[Comment]:
    line, column = token.start
    for match in _NOQA.finditer(token.string):
        for_file = match["file"] is not None
        # A comment rest code is not for the whole file.
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


def filter_suppressed(
    path: str, text: str, findings: Iterable[Finding], is_run: IsRun
) -> list[Finding]:
    """Return the findings that no comment suppresses, and one for each unused comment.

    `is_run` says whether all rules of a code or prefix were run; otherwise a comment may be used.
    """
    findings = list(findings)
    if not findings and not ("HF" in text and _NAMES_HANDFAST.search(text)):
        return []  # nothing to suppress, and no comment that could be unused
    found = comments(text)
    if not found:
        return findings
    by_line: defaultdict[int, list[Comment]] = defaultdict(list)
    for comment in found:
        by_line[0 if comment.for_file else comment.line].append(comment)

    def is_suppressed(finding: Finding) -> bool:
        place = finding.place
        near = (by_line.get(line, ()) for line in {0, place.line, place.end_line})
        # `sum`, not `any`: two comments that suppress the same finding are both used.
        return bool(sum(comment.suppresses(finding) for there in near for comment in there))

    kept = [each for each in findings if not is_suppressed(each)]
    lines = lines_in(text)
    unused = [each for comment in found for each in _unused(path, lines, comment, is_run)]
    return kept + [each for each in unused if not is_suppressed(each)]


def _unused(path: str, lines: list[str], comment: Comment, is_run: IsRun) -> Iterator[Finding]:
    unused = [
        code
        for code in comment.codes
        if code.startswith("HF")
        and code not in comment.used
        and not UNUSED_NOQA.startswith(code)
        and is_run(code)
    ]
    if not unused:
        return
    place = Span(path, comment.line, comment.column, comment.line, comment.end_column)
    named = ", ".join(unused)
    message = f"Unused noqa comment: nothing here is reported as {named}"
    yield Finding(UNUSED_NOQA, message, place, fix=_removal(lines, comment, unused, place))


def _removal(lines: list[str], comment: Comment, unused: list[str], place: Span) -> Fix:
    left = [code for code in comment.codes if code not in unused]
    if left:
        head = comment.text.partition(":")[0]
        if comment.for_file:
            head = ":".join(comment.text.split(":")[:2])
        return Fix("Remove the unused codes", (Edit(place, f"{head}: {', '.join(left)}"),), True)
    line = lines[comment.line - 1]
    rest = line[comment.end_column - 1 :]
    start, end, new = place.column, place.end_column, ""
    if not rest.strip():
        start, end = len(line[: start - 1].rstrip()) + 1, len(line) + 1
    elif not rest.lstrip().startswith("#"):
        new = "#"  # the rest of the comment stays a comment
    edit = Edit(replace(place, column=start, end_column=end), new)
    return Fix("Remove the comment", (edit,), True)
