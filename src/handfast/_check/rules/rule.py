"""`Rule`: a code of the catalogue and a function from a module to findings; and `report()`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps

from handfast._check.finding import Confidence, Finding, Fix, Related, place_of
from handfast._check.model.syntax.module import Module
from handfast._check.model.syntax.project import Project, creates_tasks, has_closing
from handfast.catalogue import BugKind, Harm

CREATING = "<creating>"
"""A file that creates a task has it."""
ANY_CREATING = "create_task|ensure_future|_background_task|spawn"
"""The same, also for tasks that a group or a framework tracks."""
OWNING = f"{CREATING}|<owners>"
"""The same, also for a file with a class whose base creates tasks in another file."""

Check = Callable[[Module], Iterator[Finding]]

_BASES = re.compile(r"^[ \t]*class[ \t]+\w+[^(:\n]*\(([^)]{0,2000})\)", re.MULTILINE)
_TRIO = re.compile(r"(?:\A|\n)[ \t]*(?:import|from) trio\b")
_NAME = re.compile(r"\w+")
_ASYNC = re.compile(r"async def (\w+)")
# `f()` as a statement, as a condition and as a value. It begins with a literal, which is found quickly.
_CALLED = re.compile(r"\n[ \t]*+(?:(?:if|while|not|assert|\w++ =) )*+(?:self\.)?(\w++)\(")
_FILLED = re.compile(r"\n[ \t]+self\.\w+(?:\[[^\n]*\])? = await ")
_UPDATED = re.compile(r"\n[ \t]+self\.\w+ (?:-= |= \w+ [-+*])")
_ENTRY = re.compile(r"\n[ \t]*+(?:if|elif|while|assert) [^\n]*? in self\.\w")
_TESTED = re.compile(r"if \(*\w+\.(\w+)\)* *:")
_RAISED = re.compile(r"\.(\w+) *= *True")
# In a coroutine, a loop is indented.
_LOOP = re.compile(r"\n([ \t]+)for ")
_SCOPE = re.compile(r"\n([ \t]*)(?:async def|def|class) ")
_WAIT = re.compile(r"await|async with|async for|yield")
_LIMIT = re.compile(r"if (?:len\(self\.\w++\)|self\.\w++) [<>]")
# The lines before it in which its `if` is looked for.
_BEFORE = 200


class Words:
    """Answers whether a file has one of several words; looks for each word once."""

    def __init__(self, text: str, project: Project | None = None) -> None:
        self._text = text
        self._project = project or Project()
        self._known: dict[str, bool] = {}

    @cached_property
    def is_of_trio(self) -> bool:
        """Whether the file imports trio, and neither asyncio nor anyio."""
        text = self._text
        # The plain searches are faster than the expression, and each settles most files.
        if "asyncio" in text or "anyio" in text or "trio" not in text:
            return False
        return _TRIO.search(text) is not None

    def has(self, alternatives: str) -> bool:
        """Whether the file has one of the words, which are separated by `|`.

        `<creating>` stands for the creation of a task, `<makers>` for a call of a function of the
        project that returns one, `<objects>` for a call of a class that creates one, `<owners>` and
        `<clearing>` for a class derived from such a class or from one that clears an attribute,
        `<closing>` for a function that ends something, `<unawaited>` for a call of a coroutine
        function of the file without an `await`, `<filling>` for `self.x = await` after an `if`,
        `<updating>` for `self.x -= n` or `self.x = n + 1`, `<limits>` for `if self.x < n`, `<entries>`
        for `key in self.x` before the removal of an entry, `<flags>` for `if self.x:` and `self.x = True`,
        and `<loops>` for a `for` with an `await` or a `yield` after it in the same function.
        """
        known = self._known.get(alternatives)
        if known is None:
            known = any(map(self._has_word, alternatives.split("|")))
            self._known[alternatives] = known
        return known

    def _has_word(self, word: str) -> bool:
        if not word.startswith("<"):
            return word in self._text
        project = self._project
        match word:
            case "<creating>":
                # Plain searches first: most files have none of the words.
                words = map(
                    self._text.__contains__,
                    ("create_task", "ensure_future", "Task(", "asyncio.async"),
                )
                return any(words) and creates_tasks(self._text.encode())
            case "<makers>":
                return any(f"{each}(" in self._text for each in project.task_makers)
            case "<objects>":
                return any(f"{each}(" in self._text for each in project.task_owners)
            case "<owners>":
                return not project.task_owners.isdisjoint(self._bases)
            case "<clearing>":
                return not project.clearing_classes.isdisjoint(self._bases)
            case "<unawaited>":
                return not set(_CALLED.findall(self._text)).isdisjoint(_ASYNC.findall(self._text))
            case "<filling>":
                return any(map(_fills, _FILLED.finditer(self._text)))
            case "<updating>":
                return "await " in self._text and _UPDATED.search(self._text) is not None
            case "<limits>":
                return "await " in self._text and _LIMIT.search(self._text) is not None
            case "<entries>":
                taking = map(self._text.__contains__, ("del self.", ".pop(", ".remove("))
                return any(taking) and _ENTRY.search(self._text) is not None
            case "<flags>":
                return not set(_RAISED.findall(self._text)).isdisjoint(_TESTED.findall(self._text))
            case "<loops>":
                return _has_waiting_loop(self._text)
            case "<closing>":
                return has_closing(self._text.encode())
        raise ValueError(word)

    @cached_property
    def _bases(self) -> frozenset[str]:
        return frozenset(_NAME.findall(" ".join(_BASES.findall(self._text))))


def _has_waiting_loop(text: str) -> bool:
    loops = [(each.start(), len(each[1]), "loop") for each in _LOOP.finditer(text)]
    waits = [(each.start(), 0, "wait") for each in _WAIT.finditer(text)] if loops else []
    scopes = (
        [(each.start(), len(each[1]), "scope") for each in _SCOPE.finditer(text)] if waits else []
    )
    outermost: int | None = None  # the indent of the outermost loop whose function has not ended
    for _, indent, what in sorted([*loops, *waits, *scopes]) if waits else ():
        if what == "loop":
            outermost = indent if outermost is None else min(indent, outermost)
        elif what == "wait" and outermost is not None:
            return True
        elif what == "scope" and outermost is not None and indent < outermost:
            outermost = None  # a function inside the loop is indented deeper
    return False


def _fills(found: re.Match[str]) -> bool:
    return "if " in found.string[max(0, found.start() - _BEFORE) : found.start()]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. The findings of a pedantic rule have medium confidence, and it reports nothing by
    default: it is wrong too often, or what it reports is a matter of taste."""

    code: str
    check: Check
    pedantic: bool = False
    needs: tuple[str, ...] = ()
    """Words that every file with a finding has: of each entry one, if it is several, separated by `|`.
    A file that no rule can match is not parsed, which saves time and changes no finding."""
    any_library: bool = False
    """Whether it is also right for a file that imports trio and neither asyncio nor anyio."""

    def may_find_in(self, words: Words) -> bool:
        """Whether a file has the words that the rule needs."""
        return all(map(words.has, self.needs)) and (self.any_library or not words.is_of_trio)


def report(
    code: str,
    module: Module,
    node: ast.AST,
    message: str,
    *places: Related | None,
    fix: Fix | None = None,
    pedantic: bool = False,
    harm: Harm | None = None,
    cause: str = "",
) -> Finding:
    """A finding at `node`. The message says what is wrong and where, then what to do.

    `pedantic` is medium confidence. The harm is that of the kind of bug, if no other one is given.
    Findings of one package with the same cause are shown as one; without one, the message counts.
    """
    shown = tuple(each for each in places if each is not None)
    place = place_of(module.path, node)
    confidence: Confidence = "medium" if pedantic else "high"
    harm = harm or BugKind(code).harm
    return Finding(code, message, place, shown, fix, confidence, harm, cause=cause or message)


def related(module: Module, node: ast.AST, message: str) -> Related:
    """Another place that belongs to a finding."""
    return Related(place_of(module.path, node), message)


def related_in(module: Module, owner: Module, node: ast.AST, message: str) -> Related | None:
    """The same for a place in the module `owner`, if that is the module with the finding."""
    return related(module, node, message) if owner is module else None


def line_of(node: ast.AST) -> int:
    """The line of a node; 0 for the few kinds of nodes that have none."""
    return getattr(node, "lineno", 0)


def once_per_place(check: Check) -> Check:
    """Drop all but the first finding at each place.

    A base class is checked again with each class derived from it, and a function with each of its
    callers, so one line can be found several times.
    """

    @wraps(check)
    def checked(module: Module) -> Iterator[Finding]:
        seen: set[object] = set()
        for finding in check(module):
            if finding.place not in seen:
                seen.add(finding.place)
                yield finding

    return checked
