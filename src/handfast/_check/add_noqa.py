"""Adds `# noqa` comments that suppress findings: `--add-noqa`.

A comment must not change the program: at the end of a line it may be inside a string.
"""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from handfast._check.finding import Edit, Finding, Fix
from handfast._check.fixes.apply_fixes import FixedFile, fix_text
from handfast._check.settings.selection import CHECKER_CODES
from handfast._check.source import lines_in
from handfast._check.suppressions import Comment, comments


def add_noqa(
    findings: Iterable[Finding], texts: Mapping[str, str]
) -> tuple[list[FixedFile], list[Finding]]:
    """Return the changed files, and the findings for which no comment is possible.

    Nothing is written. `FixedFile.fixed` are the findings that the comments suppress.
    """
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.code not in CHECKER_CODES:
            by_path[finding.place.path].append(finding)
    files: list[FixedFile] = []
    left: list[Finding] = []
    for path, there in sorted(by_path.items()):
        text = texts[path]
        # A comment on the first line of the finding; if that is impossible, on the last one.
        after, rest, done = _add(text, {each: each.place.line for each in there})
        after, rest, more = _add(after, {each: each.place.end_line for each in rest})
        left += rest
        if done + more:
            files.append(FixedFile(path, text, after, tuple(done + more)))
    return files, left


def _add(text: str, lines: Mapping[Finding, int]) -> tuple[str, list[Finding], list[Finding]]:
    """Return the text with comments on these lines, and the findings without and with one."""
    by_line: defaultdict[int, list[Finding]] = defaultdict(list)
    for finding, line in lines.items():
        by_line[line].append(finding)
    known = {each.line: each for each in comments(text) if each.codes and not each.for_file}
    source = lines_in(text)
    edits = {
        line: _edit(there, line, source[line - 1], known.get(line))
        for line, there in by_line.items()
    }
    after, applied = fix_text(text, edits.values())
    if not _is_same(text, after):  # one of them is in a string: try each by itself
        good = [each for each in edits.values() if _is_same(text, fix_text(text, [each])[0])]
        after, applied = fix_text(text, good)
    done = [finding for each in applied for finding in by_line[each.place.line]]
    return after, [each for each in lines if each not in done], done


def _edit(findings: list[Finding], line: int, source: str, known: Comment | None) -> Finding:
    """Return a finding whose fix adds the codes of others to a line."""
    codes = {each.code for each in findings}
    place = replace(findings[0].place, line=line, end_line=line)
    if known is None:
        end = len(source.rstrip()) + 1
        new = f"  # noqa: {', '.join(sorted(codes))}"
        place = replace(place, column=end, end_column=len(source) + 1)
    else:
        new = f"{known.text.partition(':')[0]}: {', '.join(sorted(codes | {*known.codes}))}"
        place = replace(place, column=known.column, end_column=known.end_column)
    return replace(findings[0], place=place, fix=Fix("add a comment", (Edit(place, new),)))


def _is_same(before: str, after: str) -> bool:
    """Whether a changed text is still the same program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return before != after and ast.dump(ast.parse(before)) == ast.dump(ast.parse(after))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
