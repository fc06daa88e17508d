"""One file through the rules: parsed, judged, and what its comments take back taken back.

Whatever a file does to the parser or to a rule is said of that file, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.catalogue import KINDS
from holdfast.check.asking import Asking
from holdfast.check.columns import in_characters
from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.model.thread_callbacks import declare
from holdfast.check.noqa import sift
from holdfast.check.report import Trouble
from holdfast.check.result import Result
from holdfast.check.rules.rule import Rule
from holdfast.check.selection import BROKEN, UNUSED_NOQA, Selection
from holdfast.check.show import line_for
from holdfast.check.source import Broken, parse, read

__all__ = ["check_file"]

_DEEP = "too deeply nested to be checked"


def check_file(
    path: str,
    name: str,
    project: Asking,
    rules: tuple[Rule, ...],
    selection: Selection,
    keys: Mapping[str, str],
    ended: Mapping[str, int],
    content: bytes | None = None,
) -> Result:
    """Check one file; `keys` and `ended` are what a result is bound to."""
    result = Result(path)
    try:
        module = _module(path, name, project, read(path) if content is None else content)
    except Broken as error:
        result.broken = _if_wanted(Trouble(path, error.line, error.why), selection)
        return result
    except RecursionError:
        result.broken = _if_wanted(Trouble(path, 1, _DEEP), selection)
        return result
    declare(module, selection.thread_callbacks)
    wanted = [rule for rule in rules if selection.has(rule.code, pedantic=rule.pedantic)]
    troubles: list[Trouble] = []
    found = list(_found(module, wanted, selection, troubles))
    found = [replace(each, show=line_for(module, each)) for each in dict.fromkeys(found)]
    found = [in_characters(each, _Lines(module, project)) for each in found]
    kept = sift(path, module.source.text, found, _Looked(rules, wanted, selection))
    result.findings = tuple(kept)
    result.broken = tuple(troubles)
    modules, names = project.asked_from(name)
    result.asked = {each: keys.get(each, "") for each in sorted(modules - {name})}
    result.ended = {each: ended.get(each, 0) for each in sorted(names)}
    return result


def _if_wanted(trouble: Trouble, selection: Selection) -> tuple[Trouble, ...]:
    # Asked for some codes only, one still has to know that a file was not looked at.
    return () if any(BROKEN.startswith(each) for each in selection.ignore) else (trouble,)


def _module(path: str, name: str, project: Asking, content: bytes) -> Module:
    known = project.known(name)
    if known is not None and known.path == path:
        return known
    module = Module(parse(path, content), name, project.seen_from(name, content))
    if known is None:
        project.add(module)
    return module


def _found(
    module: Module, rules: list[Rule], selection: Selection, troubles: list[Trouble]
) -> Iterator[Finding]:
    for rule in rules:
        try:
            for finding in rule.check(module):
                pedantic = finding.pedantic or rule.pedantic
                if selection.has(finding.code, pedantic=pedantic):
                    yield replace(finding, pedantic=pedantic)
        except RecursionError:
            troubles.append(Trouble(module.path, 1, f"{_DEEP} for {rule.code}"))
        except Exception as error:
            # One rule's fault may cost neither the other rules nor the other files.
            why = f"fault of holdfast in {rule.code}: {type(error).__name__}: {error}"
            troubles.append(Trouble(module.path, 1, why))


class _Lines:
    """The lines of the file, and of those that were parsed beside it."""

    def __init__(self, module: Module, project: Asking) -> None:
        self._own = module
        self._project = project

    def __call__(self, path: str, number: int) -> str:
        source = self._own.source
        if path != source.path:
            other = self._project.at(path)
            if other is None:
                return ""
            source = other.source
        return source.line(number)


class _Looked:
    """Whether all findings that a `noqa` could mean were looked for."""

    def __init__(self, rules: tuple[Rule, ...], wanted: list[Rule], selection: Selection) -> None:
        self._wanted = {rule.code for rule in wanted}
        self._all = {rule.code for rule in rules}
        self._selection = selection

    def __call__(self, code: str) -> bool:
        if not self._selection.has(UNUSED_NOQA):
            return False
        meant = {each for each in self._all if each.startswith(code)}
        if meant:
            # With some findings of it held back, nobody knows.
            return meant <= self._wanted
        # A kind that only another detector sees is no mistake of the writer.
        return not any(each.code.startswith(code) for each in KINDS)
