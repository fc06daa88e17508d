"""Library objects that must be closed: a short list of types, which users extend with `register`.

A type is patched once its module is loaded; nothing is imported from here. Types are looked for
when a recording begins and at each snapshot, so what is created between an import and the next
snapshot is not seen. Objects are referenced weakly: one that is dropped while it is open is
reported as such.
"""

from __future__ import annotations

import re
import sys
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NamedTuple

from handfast._census import creation_log
from handfast._census.creation import Creation, creation_in
from handfast._census.kind import Kind
from handfast._census.known_libraries import OPENS_CONNECTIONS_THROUGH
from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch

_CODE = re.compile(r"HF\d{3}")


class _ClosableType:
    """A registered type: its dotted path, and how to tell whether an instance is open."""

    __slots__ = ("_is_open", "_what", "code", "path")

    def __init__(
        self,
        path: str,
        is_open: Callable[[Any], bool],
        code: str,
        what: Callable[[Any], str] | None,
    ) -> None:
        self.path = path
        self.code = code
        self._is_open = is_open
        self._what = what

    @property
    def package(self) -> str:
        return self.path.partition(".")[0]

    def find(self) -> type | None:
        """The type, if its module is loaded."""
        if self.package not in sys.modules:
            return None
        module, _, name = self.path.rpartition(".")
        found = getattr(sys.modules.get(module), name, None)
        return found if isinstance(found, type) else None

    def is_open(self, closable: Any) -> bool:
        """Whether it is open. If that fails, its construction did not finish: it is not."""
        try:
            return bool(self._is_open(closable))
        except Exception:
            return False

    def what(self, closable: Any) -> str:
        try:
            return self._what(closable) if self._what else self.path
        except Exception:  # a user's function, called with a half-built object
            return self.path


class _Entry(NamedTuple):
    """One closable object that was created."""

    reference: weakref.ref[Any]
    type: _ClosableType
    creation: Creation | None


_TYPES: dict[str, _ClosableType] = {}
# By id, since a closable may be equal to another or unhashable.
_ENTRIES: dict[int, _Entry] = {}
_COLLECTED: list[LiveObject] = []


def register(
    path: str,
    *,
    is_open: Callable[[Any], bool],
    code: str = "HF743",
    what: Callable[[Any], str] | None = None,
) -> None:
    """Report instances of the type at `path`, and of its subclasses, that are not closed.

    `is_open` says whether an instance still has to be closed; `what` names it in reports. The type
    must support weak references. Nothing is imported.

    >>> register("somewhere.Pool", is_open=lambda pool: not pool.closed)
    """
    _check_names(path, code)
    for name, function in (("is_open", is_open), ("what", what)):
        if not callable(function) and (name == "is_open" or function is not None):
            raise TypeError(f"{name} of {path} cannot be called: give a function of one of them")
    _TYPES[path] = _ClosableType(path, is_open, code, what)


def _check_names(path: object, code: object) -> None:
    names = path.split(".") if isinstance(path, str) else []
    if len(names) < 2 or not all(name.isidentifier() for name in names):
        raise ValueError(f"{path!r} is no dotted path of a type: write 'package.module.Type'")
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        raise ValueError(f"{code!r} is no code of the catalogue: write one like 'HF743'")


def open_closables(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each closable that is open, and each that was collected so; they belong to no loop."""
    _PATCHES.update()
    yield from (_live_closable(*found) for found in _still_open())
    yield from tuple(_COLLECTED)


def opened_by(packages: frozenset[str]) -> list[LiveObject]:
    """The open closables whose connections these packages open."""
    return [
        _live_closable(closable, entry)
        for closable, entry in _still_open()
        if not packages.isdisjoint(
            (entry.type.package, *OPENS_CONNECTIONS_THROUGH.get(entry.type.package, ()))
        )
    ]


def _still_open() -> Iterator[tuple[Any, _Entry]]:
    for key, entry in tuple(_ENTRIES.items()):
        closable = entry.reference()
        if closable is None:
            _ENTRIES.pop(key, None)
        elif entry.type.is_open(closable):
            yield closable, entry


def _live_closable(closable: Any, entry: _Entry) -> LiveObject:
    return LiveObject(
        check="resources",
        code=entry.type.code,
        # With the creation: the id of a collected object is used again.
        key=("resource", id(closable), entry.creation),
        what=f"{entry.type.what(closable)}, open",
        ended=lambda: not _is_still_open(entry),
        creation=entry.creation,
        target=entry.reference,
    )


def _is_still_open(entry: _Entry) -> bool:
    closable = entry.reference()
    return closable is not None and entry.type.is_open(closable)


def _collected(closable: Any, entry: _Entry) -> LiveObject:
    return LiveObject(
        check="resources",
        code=entry.type.code,
        key=("collected", object()),
        what=f"{entry.type.what(closable)}, collected while it was open",
        ended=lambda: False,
        creation=entry.creation,
    )


# --- patches -----------------------------------------------------------------------------------


class _TypePatches(Patch):
    """The patches of all registered types that are loaded; `update` adds new ones."""

    __slots__ = ("_installed", "_is_on", "_patched")

    def __init__(self) -> None:
        self.where = None  # many places
        self._is_on = False
        self._installed: list[Patch] = []
        self._patched: set[str] = set()

    def install(self) -> None:
        self._is_on = True
        self.update()

    def uninstall(self) -> None:
        self._is_on = False
        self._patched.clear()
        while self._installed:
            self._installed.pop().uninstall()

    def update(self) -> None:
        """Patch the types that were loaded since."""
        if not self._is_on or len(self._patched) == len(_TYPES):
            return
        for path, closable_type in tuple(_TYPES.items()):
            if path not in self._patched and (found := closable_type.find()) is not None:
                self._patched.add(path)
                self._patch(found, path)

    def _patch(self, found: type, path: str) -> None:
        for patch in (
            Patch(found, "__init__", lambda init: _wrap_init(init, path)),
            Patch(found, "__del__", _wrap_del),
        ):
            try:
                patch.install()
            except TypeError:  # a type written in C cannot be patched
                return
            self._installed.append(patch)


_PATCHES = _TypePatches()


def patches() -> Iterator[Patch]:
    """Record the creation and the collection of closables."""
    yield _PATCHES


def _wrap_init(init: Callable[..., None], path: str) -> Callable[..., None]:
    # With its signature: aiohttp-client-cache asks for the parameters of the session.
    @wraps(init)
    def wrapper(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        try:
            # Not as an attribute: the type may reject it, or be pickled.
            creation = creation_in(sys._getframe(1), creation_log.current_owner())
            _ENTRIES[id(self)] = _Entry(weakref.ref(self), _TYPES[path], creation)
        except TypeError:  # no weak references
            pass

    return wrapper


def _wrap_del(delete: Callable[..., None] | None) -> Callable[..., None]:
    def wrapper(self: Any) -> None:
        # In a cycle, weak references are cleared before this runs; the entry is still there.
        entry = _ENTRIES.pop(id(self), None)
        if entry is not None and not sys.is_finalizing() and entry.type.is_open(self):
            _COLLECTED.append(_collected(self, entry))
        if delete is not None:
            delete(self)

    return wrapper


# Not here: clients that connect only when they are used (redis), and those whose connections are
# listed as transports.
register("aiohttp.ClientSession", is_open=lambda session: not session.closed)
# A client that was never used holds nothing, and httpx itself does not ask for its close.
register("httpx.AsyncClient", is_open=lambda client: client._state.name == "OPENED")

KIND = Kind("resources", ("HF743",), open_closables, patches, clear=_COLLECTED.clear)
