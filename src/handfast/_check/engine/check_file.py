"""Checks one file: parse it, run the rules, apply suppressions.

An error in the parser or in a rule is reported for the file; the run continues with the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from handfast._check.engine.dependency_tracking import TrackedProject
from handfast._check.engine.file_facts import SourceFile
from handfast._check.finding import Finding, LineOf, in_characters
from handfast._check.model.syntax.module import Module
from handfast._check.model.threads.callbacks import declare
from handfast._check.report import FileError, FileResult
from handfast._check.rules.rule import Rule, Words
from handfast._check.settings.selection import BROKEN, UNUSED_NOQA, Selection
from handfast._check.source import SourceError, decoded, parse
from handfast._check.suppressions import IsRun, filter_suppressed
from handfast.catalogue import KINDS

_DEEP = "too deeply nested to be checked"


def check_file(file: SourceFile, project: TrackedProject, rules: tuple[Rule, ...]) -> FileResult:
    """Check one file. The result names the modules and the ended names that it depends on."""
    path, name = file.path, file.location.module
    selection = file.settings.selection_for(path)
    result = FileResult(path)
    wanted = _wanted(selection, rules)
    try:
        text = decoded(path, file.content or b"")
        words = _FileWords(text, project)
        matching = [rule for rule in wanted if rule.may_find_in(words)]
        if not matching:
            result.findings = tuple(
                filter_suppressed(path, text, (), _is_run(rules, wanted, selection))
            )
            return result
        module = _module(path, name, project, file.content or b"")
    except SourceError as error:
        broken = FileError(path, error.line, error.why, python=error.python)
        result.broken = _unless_ignored(broken, selection)
        return result
    except RecursionError:
        result.broken = _unless_ignored(FileError(path, 1, _DEEP), selection)
        return result
    if selection.thread_callbacks:
        declare(module, selection.thread_callbacks)
    errors: list[FileError] = []
    found = list(_found(module, matching, selection, errors))
    line_of = _line_of(module, project)
    found = [in_characters(each, line_of) for each in dict.fromkeys(found)]
    is_run = _is_run(rules, wanted, selection)
    result.findings = tuple(filter_suppressed(path, module.source.text, found, is_run))
    result.broken = tuple(errors)
    modules, names = project.dependencies_of(name)
    files = project.files
    result.modules = {each: files.key_of(each) for each in sorted(modules - {name})}
    result.ended = {each: files.ended.get(each, 0) for each in sorted(names)}
    return result


_selected: dict[tuple[int, Selection], tuple[tuple[Rule, ...], list[Rule]]] = {}
"""The selected rules, by the identity of all rules, which the value keeps alive."""


def _wanted(selection: Selection, rules: tuple[Rule, ...]) -> list[Rule]:
    """The selected rules. Most files of a run have the same selection."""
    key = id(rules), selection
    if key not in _selected:
        wanted = [rule for rule in rules if selection.has(rule.code, pedantic=rule.pedantic)]
        _selected[key] = rules, wanted
    return _selected[key][1]


class _FileWords(Words):
    """The words of one file; looks for each once, also if several rules need it."""

    def __init__(self, text: str, project: TrackedProject) -> None:
        super().__init__(text, project)
        self._words: dict[str, bool] = {}

    def _has_word(self, word: str) -> bool:
        known = self._words.get(word)
        if known is None:
            known = self._words[word] = super()._has_word(word)
        return known


def _unless_ignored(error: FileError, selection: Selection) -> tuple[FileError, ...]:
    # `--select` does not hide it: the user must know that the file was not checked.
    return () if any(BROKEN.startswith(each) for each in selection.ignore) else (error,)


def _module(path: str, name: str, project: TrackedProject, content: bytes) -> Module:
    known = project.parsed_module(name)
    if known is not None and known.path == path:
        return known
    module = Module(parse(path, content), name, project.view_of(name, content))
    if known is None:
        project.add(module)
    return module


def _found(
    module: Module, rules: list[Rule], selection: Selection, errors: list[FileError]
) -> Iterator[Finding]:
    for rule in rules:
        try:
            for finding in rule.check(module):
                if rule.pedantic or selection.relaxed:
                    finding = replace(finding, confidence="medium")
                if selection.has(finding.code, pedantic=finding.pedantic):
                    # Where a module is imported from: its package, or itself.
                    package = module.name.partition(".")[0] or module.path
                    yield replace(
                        finding,
                        cause=f"{package} {finding.cause}" if finding.cause else "",
                    )
        except RecursionError:
            errors.append(FileError(module.path, 1, f"{_DEEP} for {rule.code}"))
        except Exception as error:
            # A bug in one rule must not stop the other rules.
            why = f"bug in handfast, rule {rule.code}: {type(error).__name__}: {error}"
            errors.append(FileError(module.path, 1, why, is_internal=True))


def _line_of(module: Module, project: TrackedProject) -> LineOf:
    """Return a function for the lines of a module, and of others that were parsed for it."""

    def line_of(path: str, number: int) -> str:
        at = module if path == module.path else project.at(path)
        return "" if at is None else at.source.line(number)

    return line_of


def _is_run(rules: Iterable[Rule], wanted: Iterable[Rule], selection: Selection) -> IsRun:
    """Return a function that says whether all rules of a code in a `noqa` comment were run."""
    wanted_codes = {rule.code for rule in wanted}
    all_codes = {rule.code for rule in rules}

    def is_run(code: str) -> bool:
        if not selection.has(UNUSED_NOQA):
            return False
        meant = {each for each in all_codes if each.startswith(code)}
        if meant:
            # If some of them did not run, it is unknown whether the comment is used.
            return meant <= wanted_codes
        # A code that only another detector reports is not a mistake.
        return not any(each.code.startswith(code) for each in KINDS)

    return is_run
