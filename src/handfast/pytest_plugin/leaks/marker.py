"""Settings of the leak detector for each test: `@pytest.mark.leaks` over the ini file.

Also tracks which ignores matched a leak. One that matched nothing is out of date, which only a
run of all tests can show; under xdist, the counts of all workers are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypedDict

import pytest

from handfast._census import CHECKS, DEFAULT
from handfast._did_you_mean import suggest_or_list
from handfast._leaks.audit import GRACE
from handfast._leaks.ignore import Ignore, Ignores
from handfast._runtime.arguments import seconds
from handfast.leaks import Leak
from handfast.pytest_plugin.marker_arguments import BadMarker, keywords

_NAMES = ("check", "ignore", "reason", "grace")
_Node = pytest.Item | pytest.Collector


@dataclass(frozen=True, slots=True)
class LeakSettings:
    """What is checked after a test. Without checks, nothing is."""

    checks: tuple[str, ...] = DEFAULT
    grace: float = GRACE
    ignores: tuple[Ignores, ...] = ()
    """Those of the ini file first, the test's own last."""

    def without_ignored(self, leaks: Iterable[Leak]) -> list[Leak]:
        """Return the leaks that no ignore matches."""
        found = list(leaks)
        # Each is applied to all leaks: the second that matches one counts as used, too.
        kept = [{id(leak) for leak in ignores.filter(found)} for ignores in self.ignores]
        return [leak for leak in found if all(id(leak) in ids for ids in kept)]


class IgnoreUse(TypedDict):
    """How often one ignore was used in one process, as JSON."""

    where: str
    pattern: str
    reason: str
    used: bool
    ran: int
    tests: int


@dataclass(slots=True)
class _IgnoreSource:
    """A marker or the ini file: its ignores, and the tests that they apply to."""

    where: str
    ignores: Ignores
    ran: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)

    def uses(self) -> Iterator[IgnoreUse]:
        unused = {id(ignore) for ignore in self.ignores.unused}
        for ignore in self.ignores.all:
            yield IgnoreUse(
                where=self.where,
                pattern=ignore.pattern,
                reason=ignore.reason,
                used=id(ignore) not in unused,
                ran=len(self.ran),
                tests=len(self.tests),
            )


class LeakOptions:
    """The settings of the ini file and of the markers.

    A marker on the test wins over one on its class, and that over one on the module, for each
    argument by itself; ignores add up. `check=["tasks"]` replaces the checks, and
    `check=["+descriptors"]` adds to them. `check=[]` checks nothing, and needs a reason.
    """

    def __init__(self, config: pytest.Config) -> None:
        try:
            self._default = _from_ini(config)
        except (TypeError, ValueError) as error:
            raise pytest.UsageError(f"in the ini file: {error}") from None
        self._ini = _IgnoreSource("the ini file", self._default.ignores[0])
        # By identity. The marker is kept as well, so that its id is not used again.
        self._sources: dict[int, tuple[pytest.Mark, _IgnoreSource]] = {}

    def of(self, item: pytest.Item) -> LeakSettings:
        """Return the settings for this test. Raises `BadMarker`."""
        settings = self._default
        for node, mark in _marks(item):
            ignores = self._source(node, mark).ignores
            settings = _with_marker(settings, keywords(mark, _NAMES))
            settings = replace(settings, ignores=(*settings.ignores, ignores))
        return settings

    def add_ran(self, item: pytest.Item) -> None:
        """Note that this test ran and its ignores were applied. Not for a skipped test."""
        for source in self._sources_of(item):
            source.ran.add(item.nodeid)

    def uses(self, items: Iterable[pytest.Item]) -> list[IgnoreUse]:
        """Return how each ignore was used; `items` are all tests, the deselected ones too."""
        for item in items:
            for source in self._sources_of(item):
                source.tests.add(item.nodeid)
        sources = (self._ini, *(source for _, source in self._sources.values()))
        return [use for source in sources for use in source.uses()]

    def _sources_of(self, item: pytest.Item) -> list[_IgnoreSource]:
        try:
            return [self._ini, *(self._source(node, mark) for node, mark in _marks(item))]
        except BadMarker:  # the test has failed for it
            return [self._ini]

    def _source(self, node: _Node, mark: pytest.Mark) -> _IgnoreSource:
        """Return the one source of a marker: all tests of a class share the marker on it."""
        if id(mark) not in self._sources:
            ignores = Ignores(_ignores(keywords(mark, _NAMES)))
            self._sources[id(mark)] = (mark, _IgnoreSource(_where(node, mark), ignores))
        return self._sources[id(mark)][1]


# --- unused ignores ------------------------------------------------------------------------------


def is_whole_run(config: pytest.Config) -> bool:
    """Whether the command line selects all tests. Not for a worker of xdist, which always gets
    paths."""
    narrowed = any(config.getoption(name, None) for name in ("lf", "ignore", "ignore_glob"))
    return not narrowed and config.args_source is not pytest.Config.ArgsSource.ARGS


def unused_ignores(uses: Iterable[IgnoreUse]) -> list[str]:
    """Return a line for each ignore that matched no leak, although all its tests ran."""
    added: dict[tuple[str, str, str], tuple[bool, int, int]] = {}
    for use in uses:
        key = (use["where"], use["pattern"], use["reason"])
        used, ran, tests = added.get(key, (False, 0, 0))
        # Each worker of xdist collects all tests and runs some of them.
        added[key] = (used or use["used"], ran + use["ran"], max(tests, use["tests"]))
    return [
        f"{where}: ignore {pattern!r} matches no leak any more: remove it (its reason: {reason})"
        for (where, pattern, reason), (used, ran, tests) in added.items()
        if not used and ran >= tests > 0
    ]


# --- the marker ----------------------------------------------------------------------------------


def _marks(item: pytest.Item) -> Iterator[tuple[_Node, pytest.Mark]]:
    """Yield the markers that apply to a test, the one on the test itself last."""
    for node in item.listchain():
        marks = [mark for mark in reversed(node.own_markers) if mark.name == "leaks"]
        if isinstance(node, pytest.Class):
            # pytest lists those of the base classes first, as if they were nearer.
            marks.sort(key=partial(_depth, node.obj), reverse=True)
        yield from ((node, mark) for mark in marks)  # type: ignore[misc]


def _depth(owner: type, mark: pytest.Mark) -> int:
    """Return how many base classes up the marker is."""
    return next((up for up, each in enumerate(owner.__mro__) if _is_on(each, mark)), 0)


def _is_on(marked: object, mark: pytest.Mark) -> bool:
    """Whether the marker is on this class or function itself, and not on a base class."""
    own = vars(getattr(marked, "__func__", marked)).get("pytestmark", ())
    return any(getattr(each, "mark", each) is mark for each in _as_list(own))


def _where(node: _Node, mark: pytest.Mark) -> str:
    """Return the id of the marked test, class or module, without the parameters of a test."""
    if isinstance(node, pytest.Function) and _is_on(node.obj, mark):
        return node.nodeid.removesuffix(node.name) + node.originalname
    return node.nodeid


def _with_marker(settings: LeakSettings, given: Mapping[str, Any]) -> LeakSettings:
    if "check" in given:
        if _as_list(given["check"]) == [] and not str(given.get("reason") or "").strip():
            raise BadMarker("check=[] checks nothing, and needs a reason")
        settings = replace(settings, checks=_checks("check", given["check"], settings.checks))
    if "grace" in given:
        try:
            settings = replace(settings, grace=seconds("grace", given["grace"]))
        except (TypeError, ValueError) as error:
            raise BadMarker(str(error)) from None
    return settings


def _ignores(given: Mapping[str, Any]) -> Iterator[Ignore]:
    for pattern in _as_list(given.get("ignore", ())):
        try:
            yield Ignore(pattern, given.get("reason", ""))
        except ValueError as error:
            raise BadMarker(str(error)) from None


def _checks(name: str, value: object, before: tuple[str, ...]) -> tuple[str, ...]:
    """Return the named checks. Plain names replace those from before, "+descriptors" adds."""
    named = _as_list(value)
    for each in named:
        if not isinstance(each, str) or each.removeprefix("+") not in CHECKS:
            raise BadMarker(f"{name}: {each!r} is no check{suggest_or_list(str(each), CHECKS)}")
    only_more = named and all(each.startswith("+") for each in named)
    wanted = {*(each.removeprefix("+") for each in named), *(before if only_more else ())}
    return tuple(check for check in CHECKS if check in wanted)


def _as_list(value: Any) -> list[Any]:
    """Return one value or several as a list. An empty string is one value, and a wrong one."""
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


# --- the ini file --------------------------------------------------------------------------------


def _from_ini(config: pytest.Config) -> LeakSettings:
    named = config.getini("handfast_checks")
    grace = config.getini("handfast_grace")
    return LeakSettings(
        checks=_checks("handfast_checks", named, DEFAULT) if named else DEFAULT,
        grace=seconds("handfast_grace", _number(grace)) if grace != "" else GRACE,
        ignores=(Ignores(map(_ignore, config.getini("handfast_ignore"))),),
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
        raise ValueError(f"handfast_ignore: {line!r} is not 'pattern: reason'")
    return Ignore(pattern.strip(), reason.strip())
