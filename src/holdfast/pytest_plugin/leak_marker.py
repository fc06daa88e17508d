"""What is asked for: the arguments of @pytest.mark.leaks, over the lines of the ini file.

Only who asked for what is decided here. What a check sees, `holdfast.census` knows; what an
ignore fits, `holdfast.leaks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

import pytest

from holdfast.census import CHECKS, DEFAULT
from holdfast.leaks import Leak
from holdfast.leaks.audit import GRACE
from holdfast.leaks.ignoring import Ignore, Ignores
from holdfast.pytest_plugin.leak_ignores import Reach, Source, Use
from holdfast.pytest_plugin.marks import BadMarker, keywords
from holdfast.runtime.durations import seconds

__all__ = ["Asked", "Asking"]

_NAMES = ("check", "ignore", "reason", "grace")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked for after a test. Without checks, nothing is."""

    checks: tuple[str, ...] = DEFAULT
    grace: float = GRACE
    ignores: tuple[Ignores, ...] = ()
    """The ini file's first, the test's own last."""

    def sift(self, leaks: Iterable[Leak]) -> list[Leak]:
        """The leaks that no ignore is for."""
        found = list(leaks)
        # All are asked: one that comes second is not stale because another came first.
        kept = [{id(leak) for leak in ignores.sift(found)} for ignores in self.ignores]
        return [leak for leak in found if all(id(leak) in ids for ids in kept)]


class Asking:
    """What the ini file and the markers ask for.

    A marker on the test wins over one on its class, and that over one on the module, for each
    argument by itself; ignores add up. `check=["tasks"]` replaces what is looked for, and
    `check=["+descriptors"]` adds to it. `check=[]` looks for nothing, and needs a reason.
    """

    def __init__(self, config: pytest.Config) -> None:
        try:
            self._default = _from_ini(config)
        except (TypeError, ValueError) as error:
            raise pytest.UsageError(f"in the ini file: {error}") from None
        self._ini = Source("the ini file", "suite", self._default.ignores[0])
        # By identity, each with its marker, so that no other can come to have the same.
        self._sources: dict[int, tuple[pytest.Mark, Source]] = {}

    def of(self, item: pytest.Item) -> Asked:
        """What is asked for this test; `BadMarker` says what is wrong with a marker."""
        asked = self._default
        for node, mark in _marks(item):
            ignores = self._source(node, mark).ignores
            asked = _over(asked, keywords(mark, _NAMES))
            asked = replace(asked, ignores=(*asked.ignores, ignores))
        return asked

    def ran(self, item: pytest.Item) -> None:
        """What this test left behind has been sifted. Not for a test that was skipped."""
        for source in self._sources_of(item):
            source.ran.add(item.nodeid)

    def uses(
        self, items: Iterable[pytest.Item], deselected: Iterable[pytest.Item] = ()
    ) -> list[Use]:
        """How each ignore has fared, of all the tests that were collected here."""
        for item in (*items, *deselected):
            for source in self._sources_of(item):
                source.there.add(item.nodeid)
        sources = (self._ini, *(source for _, source in self._sources.values()))
        return [use for source in sources for use in source.uses()]

    def _sources_of(self, item: pytest.Item) -> list[Source]:
        try:
            return [self._ini, *(self._source(node, mark) for node, mark in _marks(item))]
        except BadMarker:  # the test has failed for it
            return [self._ini]

    def _source(self, node: pytest.Item | pytest.Collector, mark: pytest.Mark) -> Source:
        """Made once: a marker on a class is the same one for all its tests."""
        if id(mark) not in self._sources:
            ignores = Ignores(_ignores(keywords(mark, _NAMES)))
            source = Source(_where(node, mark), _reach(node), ignores)
            self._sources[id(mark)] = (mark, source)
        return self._sources[id(mark)][1]


# --- the marker ----------------------------------------------------------------------------------


def _marks(item: pytest.Item) -> Iterator[tuple[pytest.Item | pytest.Collector, pytest.Mark]]:
    """The markers of a test, the farthest first."""
    for node in item.listchain():
        marks = [mark for mark in reversed(node.own_markers) if mark.name == "leaks"]
        if isinstance(node, pytest.Class):
            # pytest has those of the base classes first, as if they were nearer.
            marks.sort(key=partial(_depth, node.obj), reverse=True)
        yield from ((node, mark) for mark in marks)  # type: ignore[misc]


def _depth(owner: type, mark: pytest.Mark) -> int:
    """How many classes up the marker stands."""
    return next((up for up, each in enumerate(owner.__mro__) if _is_on(each, mark)), 0)


def _is_on(thing: object, mark: pytest.Mark) -> bool:
    """Whether the marker was put on this class or function itself."""
    # Through a method to its function; and past what a class inherits.
    own = vars(getattr(thing, "__func__", thing)).get("pytestmark", ())
    return any(getattr(each, "mark", each) is mark for each in _several(own))


def _over(asked: Asked, given: Mapping[str, Any]) -> Asked:
    """What a nearer marker makes of it."""
    if "check" in given:
        if _several(given["check"]) == [] and not str(given.get("reason") or "").strip():
            raise BadMarker("check=[] looks for nothing, and needs a reason")
        asked = replace(asked, checks=_checks("check", given["check"], asked.checks))
    if "grace" in given:
        try:
            asked = replace(asked, grace=seconds("grace", given["grace"]))
        except (TypeError, ValueError) as error:
            raise BadMarker(str(error)) from None
    return asked


def _ignores(given: Mapping[str, Any]) -> Iterator[Ignore]:
    for pattern in _several(given.get("ignore", ())):
        try:
            yield Ignore(pattern, given.get("reason", ""))
        except ValueError as error:
            raise BadMarker(str(error)) from None


def _checks(name: str, value: object, before: tuple[str, ...]) -> tuple[str, ...]:
    """The checks that are named; plain ones replace those from before, "+descriptors" adds."""
    named = _several(value)
    for each in named:
        if not isinstance(each, str) or each.removeprefix("+") not in CHECKS:
            raise BadMarker(f"{name}: {each!r} is no check{_near(each)}")
    only_more = named and all(each.startswith("+") for each in named)
    wanted = {*(each.removeprefix("+") for each in named), *(before if only_more else ())}
    return tuple(check for check in CHECKS if check in wanted)


def _near(word: object) -> str:
    near = get_close_matches(str(word), CHECKS, n=1)
    return f": did you mean {near[0]}?" if near else f"; there are {', '.join(CHECKS)}"


def _several(value: Any) -> list[Any]:
    """One word, or several: an empty word is still one, and wrong."""
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


def _where(node: pytest.Item | pytest.Collector, mark: pytest.Mark) -> str:
    """As people find it: a marker on the function is not that of one set of its parameters."""
    if isinstance(node, pytest.Function) and _is_on(node.obj, mark):
        return node.nodeid.removesuffix(node.name) + node.originalname
    return node.nodeid


def _reach(node: pytest.Item | pytest.Collector) -> Reach:
    if isinstance(node, pytest.Item):
        return "module" if hasattr(node, "callspec") else "test"
    return "module" if isinstance(node, (pytest.Class, pytest.File)) else "suite"


# --- the ini file --------------------------------------------------------------------------------


def _from_ini(config: pytest.Config) -> Asked:
    named = config.getini("holdfast_checks")
    grace = config.getini("holdfast_grace")
    return Asked(
        checks=_checks("holdfast_checks", named, DEFAULT) if named else DEFAULT,
        grace=seconds("holdfast_grace", _number(grace)) if grace != "" else GRACE,
        ignores=(Ignores(map(_ignore, config.getini("holdfast_ignore"))),),
    )


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _ignore(line: str) -> Ignore:
    # At the first ": ", since a pattern may be "bot.py:12".
    pattern, colon, reason = line.partition(": ")
    if not colon:
        raise ValueError(f"holdfast_ignore: {line!r} is not 'pattern: reason'")
    return Ignore(pattern.strip(), reason.strip())
