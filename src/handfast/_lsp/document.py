"""One checked document: its findings as diagnostics, quick fixes and hover text of the protocol.

Lines and columns of a finding count from 1, and columns count characters. Those of the protocol
count from 0, and columns count the units that server and client agreed on, by default UTF-16.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec

from handfast import catalogue
from handfast._check.engine.discovery import STDIN
from handfast._check.engine.engine import check
from handfast._check.finding import Finding, Span
from handfast._check.fixes.apply_fixes import fix_text
from handfast._check.output import page_url
from handfast._check.report import FileError, Report
from handfast._check.settings.selection import BROKEN, CHECKER_CODES, UNUSED_NOQA
from handfast._check.settings.settings import SettingsFinder
from handfast._check.settings.settings_file import BadSettings
from handfast._check.source import lines_in

_SEVERITIES = {
    # The editor or another server reports syntax errors already, and there are many while one types.
    BROKEN: types.DiagnosticSeverity.Information,
    UNUSED_NOQA: types.DiagnosticSeverity.Hint,
}


@dataclass(frozen=True, eq=False)
class CheckedDocument:
    """A version of a document, and what `check` has found in it."""

    uri: str
    version: int | None
    text: str
    report: Report
    codec: PositionCodec

    @cached_property
    def diagnostics(self) -> list[types.Diagnostic]:
        """The findings, in the order of their places."""
        return [self._diagnostic(each) for each in self.report.everything]

    def quick_fixes(self, wanted: types.Range) -> list[types.CodeAction]:
        """The fixes of the findings that touch a range, those that are safe first."""
        actions = [
            self._quick_fix(finding, diagnostic)
            for finding, diagnostic in zip(self.report.everything, self.diagnostics, strict=True)
            if _touch(diagnostic.range, wanted)
            # `fix_text` leaves out a fix after which the file would not parse.
            if finding.fix and finding.fix.edits and fix_text(self.text, [finding])[1]
        ]
        return sorted(actions, key=lambda each: not each.is_preferred)

    def hover(self, position: types.Position) -> types.Hover | None:
        """The catalogue pages of the findings at a position."""
        here = types.Range(position, position)
        found = [each for each in self.diagnostics if _touch(each.range, here)]
        if not found:
            return None
        pages = dict.fromkeys(page(str(each.code)) for each in found)
        text = types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(pages))
        return types.Hover(text, found[0].range)

    def _diagnostic(self, finding: Finding) -> types.Diagnostic:
        url = page_url(finding.code)
        return types.Diagnostic(
            range=self._range(finding.place),
            message=finding.message,
            severity=_SEVERITIES.get(finding.code, types.DiagnosticSeverity.Warning),
            code=finding.code,
            code_description=types.CodeDescription(url) if url else None,
            source="handfast",
            related_information=[
                types.DiagnosticRelatedInformation(
                    types.Location(self._uri(each.place.path), self._range(each.place)),
                    each.message,
                )
                for each in finding.related
            ],
        )

    def _quick_fix(self, finding: Finding, diagnostic: types.Diagnostic) -> types.CodeAction:
        assert finding.fix is not None
        fix, edits = finding.fix, defaultdict[str, list[types.TextEdit]](list)
        for edit in fix.edits:
            edits[self._uri(edit.place.path)].append(
                types.TextEdit(self._range(edit.place), edit.text)
            )
        return types.CodeAction(
            title=fix.message if fix.safe else f"{fix.message} (unsafe: review the change)",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic],
            is_preferred=fix.safe,
            edit=types.WorkspaceEdit(changes=dict(edits)),
        )

    def _uri(self, path: str) -> str:
        return self.uri if path == self.report.paths[0] else Path(path).absolute().as_uri()

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        texts = {path: lines_in(text) for path, text in self.report.texts.items()}
        return texts | {self.report.paths[0]: lines_in(self.text)}

    def _range(self, place: Span) -> types.Range:
        return types.Range(
            self._position(place.path, place.line, place.column),
            self._position(place.path, place.end_line, place.end_column),
        )

    def _position(self, path: str, line: int, column: int) -> types.Position:
        lines = self._lines.get(path, [])
        text = lines[line - 1] if line <= len(lines) else ""
        return types.Position(line - 1, self.codec.client_num_units(text[: column - 1]))


def checked(
    uri: str, version: int | None, path: str | None, text: str, codec: PositionCodec
) -> CheckedDocument:
    """Check the text of a document; `path` is None for one that has no file yet."""
    name = path or STDIN
    try:
        if path is not None and _is_excluded(path):
            report = Report(paths=(name,))
        else:
            content = text.encode("utf-8", "surrogatepass")
            report = check([STDIN], stdin=content, stdin_filename=path)
    except (BadSettings, OSError) as error:
        # Wrong settings are shown where the user looks: at the top of the document.
        report = Report(broken=(FileError(name, 1, str(error)),), paths=(name,))
    return CheckedDocument(uri, version, text, report, codec)


def _is_excluded(path: str) -> bool:
    """Whether the settings exclude a file, or a folder that it is in."""
    finder = SettingsFinder()
    folders = (str(each) for each in Path(path).parents)
    return finder.excluded(path, False) or any(finder.excluded(each, True) for each in folders)


def page(code: str) -> str:
    """Return the catalogue page of a code, which is Markdown."""
    if code in CHECKER_CODES:
        name, summary = CHECKER_CODES[code]
        return f"# {code} {name}\n\n{summary}\n"
    folder = Path(catalogue.__file__).with_name("pages")
    return (folder / f"{code}.md").read_text(encoding="utf-8")


def _touch(one: types.Range, other: types.Range) -> bool:
    return one.start <= other.end and other.start <= one.end
