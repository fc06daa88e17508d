"""Things of libraries that must be closed: a small list of types, to which anybody may add.

A type is hooked once its module is loaded; no library is ever imported from here. That is looked
at when recording begins and at each census, so what is made between the import and the next look
is not seen. Held weakly: whoever drops one while it is open shall be told of that, in words.
"""

from __future__ import annotations

import re
import sys
import weakref
from asyncio import AbstractEventLoop
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from holdfast.census import births
from holdfast.census.birth import Birth, birth_here
from holdfast.census.hooks import Hook
from holdfast.census.thing import Thing

__all__ = ["Collected", "ResourceOpen", "all_open", "forget", "hooks", "open_of", "register"]

_CODE = re.compile(r"HF\d{3}")
# Who opens the connections of a package. anyio does it in a task of its own, where nothing tells
# for whom; so one that the program opens by anyio while a client is open is taken for the client's.
_BY_WAY_OF = {"httpx": ("httpcore", "anyio")}


class _Kind:
    """One type that is known: its dotted path, and how to tell that one of them is open."""

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

    def is_open(self, resource: Any) -> bool:
        """One that cannot say so, because it was never finished or is half gone, is not."""
        try:
            return bool(self._is_open(resource))
        except Exception:
            return False

    def what(self, resource: Any) -> str:
        try:
            return self._what(resource) if self._what else self.path
        except Exception:  # words of somebody else about something half gone
            return self.path


class _Entry:
    """One resource that was made."""

    __slots__ = ("birth", "kind", "ref")

    def __init__(self, resource: Any, kind: _Kind, birth: Birth | None) -> None:
        self.ref: weakref.ref[Any] = weakref.ref(resource)
        self.kind = kind
        self.birth = birth


_KINDS: dict[str, _Kind] = {}
# By id, since a resource may compare equal to another, or take no hash.
_ENTRIES: dict[int, _Entry] = {}
_LOST: list[Collected] = []


class ResourceOpen(Thing):
    """A resource that nobody has closed."""

    __slots__ = ("_entry", "_id")

    check = "resources"

    def __init__(self, resource: Any, entry: _Entry) -> None:
        super().__init__(entry.birth)
        self._entry = entry
        self._id = id(resource)

    @property
    def resource(self) -> Any:
        """The resource, or None if it is gone."""
        return self._entry.ref()

    @property
    def package(self) -> str:
        """The package that its type belongs to."""
        return self._entry.kind.package

    @property
    def key(self) -> Hashable:
        # With the birth: what is held weakly may go, and another come with the same id.
        return ("resource", self._id, self.birth)

    @property
    def code(self) -> str:
        return self._entry.kind.code

    @property
    def what(self) -> str:
        state = "over" if self.over() else "open"
        return f"{self._entry.kind.what(self.resource)}, {state}"

    def over(self) -> bool:
        resource = self.resource
        return resource is None or not self._entry.kind.is_open(resource)


class Collected(Thing):
    """A resource that was collected while it was open."""

    __slots__ = ("_code", "_what")

    check = "resources"

    def __init__(self, birth: Birth | None, code: str, what: str) -> None:
        super().__init__(birth)
        self._code = code
        self._what = what

    @property
    def key(self) -> Hashable:
        return ("collected", id(self))

    @property
    def code(self) -> str:
        return self._code

    @property
    def what(self) -> str:
        return f"{self._what}, collected while it was open"

    def over(self) -> bool:
        return False


def register(
    path: str,
    *,
    is_open: Callable[[Any], bool],
    code: str = "HF743",
    what: Callable[[Any], str] | None = None,
) -> None:
    """Have the census see what is made of the type at `path`, and those derived from it.

    `is_open` tells of one whether it still has to be closed, `what` what to call it. The type
    must take weak references.

    >>> register("somewhere.Pool", is_open=lambda pool: not pool.closed)
    """
    _check_words(path, code)
    for name, function in (("is_open", is_open), ("what", what)):
        if not callable(function) and (name == "is_open" or function is not None):
            raise TypeError(f"{name} of {path} cannot be called: give a function of one of them")
    _KINDS[path] = _Kind(path, is_open, code, what)


def _check_words(path: object, code: object) -> None:
    names = path.split(".") if isinstance(path, str) else []
    if len(names) < 2 or not all(name.isidentifier() for name in names):
        raise ValueError(f"{path!r} is no dotted path of a type: write 'package.module.Type'")
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        raise ValueError(f"{code!r} is no code of the catalogue: write one like 'HF743'")


def all_open(loop: AbstractEventLoop | None = None) -> Iterator[Thing]:
    """Each resource that is open, and each that was collected so; a loop makes no difference."""
    _WATCH.look_again()
    yield from _still_open()
    yield from tuple(_LOST)


def open_of(packages: frozenset[str]) -> list[ResourceOpen]:
    """The open resources of these packages, and of those that have such work done by them."""
    return [
        thing
        for thing in _still_open()
        if thing.package in packages or not packages.isdisjoint(_BY_WAY_OF.get(thing.package, ()))
    ]


def forget() -> None:
    """What was told is over."""
    _LOST.clear()


def _still_open() -> Iterator[ResourceOpen]:
    for key, entry in tuple(_ENTRIES.items()):
        resource = entry.ref()
        if resource is None:
            _ENTRIES.pop(key, None)
        elif entry.kind.is_open(resource):
            yield ResourceOpen(resource, entry)


# --- birth and death ---------------------------------------------------------------------------


class _Watch(Hook):
    """The hooks of all types that are loaded; more of them from look to look."""

    __slots__ = ("_hooked", "_in", "_on")

    def __init__(self) -> None:
        self.where = None  # in many places
        self._on = False
        self._in: list[Hook] = []
        self._hooked: set[str] = set()

    def put_in(self) -> None:
        self._on = True
        self.look_again()

    def take_out(self) -> None:
        self._on = False
        self._hooked.clear()
        while self._in:
            self._in.pop().take_out()

    def look_again(self) -> None:
        """Hook the types that were not there before."""
        if not self._on or len(self._hooked) == len(_KINDS):
            return
        for path, kind in tuple(_KINDS.items()):
            if path not in self._hooked and (found := kind.find()) is not None:
                self._hooked.add(path)
                self._hook(found, path)

    def _hook(self, found: type, path: str) -> None:
        for hook in (
            Hook(found, "__init__", lambda init: _around_init(init, path)),
            Hook(found, "__del__", _around_del),
        ):
            try:
                hook.put_in()
            except TypeError:  # a type written in C takes no hooks
                return
            self._in.append(hook)


_WATCH = _Watch()


def hooks() -> Iterator[Hook]:
    """Where resources are made, and where they are collected."""
    yield _WATCH


def _around_init(init: Callable[..., None], path: str) -> Callable[..., None]:
    def noted(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        try:
            # Not an attribute: a type may have its own mind about those, or be pickled.
            birth = birth_here(sys._getframe(1), births.owner_now())
            _ENTRIES[id(self)] = _Entry(self, _KINDS[path], birth)
        except TypeError:  # it takes no weak references
            pass

    return noted


def _around_del(delete: Callable[..., None] | None) -> Callable[..., None]:
    def told(self: Any) -> None:
        # In a cycle the weak references are cleared before this runs; the entry is still there.
        entry = _ENTRIES.pop(id(self), None)
        if entry is not None and not sys.is_finalizing() and entry.kind.is_open(self):
            _LOST.append(Collected(entry.birth, entry.kind.code, entry.kind.what(self)))
        if delete is not None:
            delete(self)

    return told


# Not here: what connects only when it is used (redis), and what is told as a transport anyway.
register("aiohttp.ClientSession", is_open=lambda session: not session.closed)
# One that was never used holds nothing, and httpx itself does not ask for it to be closed.
register("httpx.AsyncClient", is_open=lambda client: client._state.name == "OPENED")
