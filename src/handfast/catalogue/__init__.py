"""The bug kinds: one code, one name and one page for each, shared by all detectors.

Each kind is a Markdown page in `pages/`, named after its code. To add a kind, add a page. The same
files are the rule pages of the documentation. A published code keeps its meaning; the gaps in the
numbers are reserved for new kinds.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

__all__ = ["FAMILIES", "HARMS", "KINDS", "BugKind", "Harm", "UnknownCode", "kind"]

_PAGES = os.path.join(os.path.dirname(__file__), "pages")

FAMILIES: dict[str, str] = {
    "HF1": "ownership",
    "HF2": "keyed slots",
    "HF3": "teardown order",
    "HF4": "threads and loops",
    "HF5": "cancellation and cleanup",
    "HF6": "masked errors",
    "HF7": "leaked resources",
}
"""The families in order, by the first three characters of their codes."""

Harm = Literal["corruption", "lost work", "hang", "leak", "noise"]

HARMS: dict[Harm, str] = {
    "corruption": "data or state is wrong: a closed or cleared object is used, an entry is another's",
    "lost work": "something that should happen does not, or its failure is not seen",
    "hang": "something waits and is not woken, or does not end when it is cancelled",
    "leak": "a task, a process or memory stays when nothing needs it",
    "noise": "a warning or a log entry, and no other effect",
}
"""What a bug does to a program, the worst first."""

# By the longest prefix of the code.
_HARM_OF: dict[str, Harm] = {
    "HF1": "leak",
    "HF101": "lost work",
    "HF103": "corruption",
    "HF114": "corruption",
    "HF121": "lost work",
    "HF122": "lost work",
    "HF2": "corruption",
    "HF202": "leak",
    "HF205": "leak",
    "HF3": "corruption",
    "HF303": "leak",
    "HF304": "lost work",
    "HF321": "lost work",
    "HF322": "hang",
    "HF4": "corruption",
    "HF401": "hang",
    "HF402": "hang",
    "HF403": "lost work",
    "HF41": "lost work",
    "HF42": "hang",
    "HF424": "leak",
    "HF43": "hang",
    "HF443": "lost work",
    "HF5": "leak",
    "HF501": "hang",
    "HF502": "hang",
    "HF503": "hang",
    "HF504": "lost work",
    "HF511": "lost work",
    "HF512": "lost work",
    "HF521": "hang",
    "HF522": "lost work",
    "HF532": "lost work",
    "HF533": "lost work",
    "HF541": "corruption",
    "HF542": "corruption",
    "HF6": "lost work",
    "HF7": "leak",
    "HF704": "hang",
    "HF721": "noise",
}


@dataclass(frozen=True)
class BugKind:
    """One kind of bug: its code, and the parts of its page.

    Only the code is known from the start. The page is read when one of its parts is first used, so
    importing the catalogue costs one directory listing.

    >>> from handfast.catalogue import kind
    >>> kind("HF101").name
    'task-dropped'
    """

    # Not `slots=True`: with it, assigning to a property of a frozen class raises a `TypeError`
    # about `super()` (CPython #105936).
    __slots__ = ("code",)

    code: str

    def __reduce__(self) -> tuple[type[BugKind], tuple[str]]:
        return BugKind, (self.code,)

    @property
    def name(self) -> str:
        """The name in kebab case, which can be used in place of the code."""
        return _page(self.code).name

    @property
    def family(self) -> str:
        """The family that the code belongs to."""
        return FAMILIES[self.code[:3]]

    @property
    def harm(self) -> Harm:
        """What it does to a program, in a word or two; `HARMS` describes them.

        >>> kind("HF101").harm
        'lost work'
        """
        known = (each for each in _HARM_OF if self.code.startswith(each))
        return _HARM_OF[max(known, key=len, default="HF1")]

    @property
    def summary(self) -> str:
        """What is wrong, in one sentence."""
        return _page(self.code).summary

    @property
    def why(self) -> str:
        """What the bug does to a program."""
        return _page(self.code).why

    @property
    def wrong(self) -> str:
        """A module that has the bug."""
        return _page(self.code).wrong

    @property
    def right(self) -> str:
        """The same module without the bug. It defines the same names, so one test drives both."""
        return _page(self.code).right

    @property
    def when_to_ignore(self) -> str:
        """When a finding of `check` can be ignored; empty for a kind without a rule."""
        return _page(self.code).when_to_ignore


class UnknownCode(LookupError):
    """No kind has this code or name; `near` has the kinds with the most similar ones.

    >>> from handfast.catalogue import kind
    >>> kind("HF1O1")
    Traceback (most recent call last):
    handfast.catalogue.UnknownCode: no bug kind is called 'HF1O1'; near: HF101 task-dropped, ...
    """

    def __init__(self, code: str, near: tuple[BugKind, ...] = ()) -> None:
        self.code = code
        self.near = near
        message = f"no bug kind is called {code!r}"
        if near:
            message += "; near: " + ", ".join(f"{kind.code} {kind.name}" for kind in near)
        super().__init__(message)


KINDS: tuple[BugKind, ...] = tuple(
    BugKind(file.removesuffix(".md")) for file in sorted(os.listdir(_PAGES)) if file.endswith(".md")
)
"""Every kind, sorted by code."""

_BY_CODE = {entry.code.casefold(): entry for entry in KINDS}


def kind(code: str) -> BugKind:
    """Return the kind with this code or name, ignoring case; raise `UnknownCode` if there is none.

    >>> kind("hf201").name
    'slot-evicts-successor'
    >>> kind("task-dropped").code
    'HF101'
    """
    wanted = code.strip().casefold()
    found = _BY_CODE.get(wanted) or _by_name().get(wanted)
    if found is None:
        raise UnknownCode(code, _near(wanted))
    return found


class _Page(NamedTuple):
    name: str
    summary: str
    why: str
    wrong: str
    right: str
    when_to_ignore: str


# Every page has these headings, in this order. The last section is for kinds that have a rule.
_LAYOUT = (
    r"# (HF\d+) (\S+)\n\n(.+?)\n\n"
    r"## Why it is bad\n\n(.+?)\n\n"
    r"## Wrong\n\n```python\n(.+?)```\n\n"
    r"## Right\n\n```python\n(.+?)```\n"
    r"(?:\n## When to ignore it\n\n(.+?)\n)?"
)


@cache
def _page(code: str) -> _Page:
    """Read the page of a kind and split it at its headings."""
    with open(os.path.join(_PAGES, f"{code}.md"), encoding="utf-8") as file:
        parts = re.fullmatch(_LAYOUT, file.read(), re.DOTALL)
    if parts is None or parts[1] != code:
        raise ValueError(f"{code}.md does not have the headings of a catalogue page")
    name, summary, why, wrong, right, when_to_ignore = parts.groups(default="")[1:]
    return _Page(name, _prose(summary), _prose(why), wrong, right, _prose(when_to_ignore))


def _prose(text: str) -> str:
    """Join the lines of each paragraph: a page has one sentence on each line."""
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in text.split("\n\n"))


@cache
def _by_name() -> dict[str, BugKind]:
    return {entry.name: entry for entry in KINDS}


def _near(word: str) -> tuple[BugKind, ...]:
    """Up to three kinds whose code differs in one character, or whose name is similar."""
    if word.startswith("hf"):
        return tuple(entry for entry in KINDS if _all_but_one(word, entry.code.casefold()))[:3]
    # Imported here because only an unknown name needs it.
    from handfast._did_you_mean import suggest

    return tuple(_by_name()[name] for name in suggest(word, _by_name(), most=3))


def _all_but_one(word: str, code: str) -> bool:
    return sum(map(str.__eq__, word, code)) >= len(code) - 1
