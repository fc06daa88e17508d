"""All that is checked together: classes over files, and what is cancelled or joined anywhere.

Before a rule says "never", it asks here: another file may do it. The names come from the bytes of
all files, also of those that are not parsed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import copy

from holdfast.check.model.function import Function
from holdfast.check.model.module import Class, Module
from holdfast.check.source import Broken, parse, read

__all__ = ["Elsewhere", "Project", "count_ended", "ended_names"]

# A name that a package hands on from a module that has it from another: no further.
_HANDED_ON = 5

# Each begins with something rare that is written out: that is what makes it quick.
_CANCEL = b".cancel("
# `x._task.cancel()`, `x._tasks.pop(key).cancel()`, up to the end of a text.
_CANCELLED = re.compile(
    rb"\.(\w+)(?:\[[^\]\n]*\]|\.values\(\)|\.pop\([^)\n]*\)|\.get\([^)\n]*\))*\.cancel\(\Z"
)
_JOINED = (
    # `await x._task`
    re.compile(rb"await\s+[\w.]*?\.(\w+)\b(?!\s*[.(])"),
    # `gather(*x._tasks)`, `wait(x._tasks)`
    re.compile(
        rb"\((?:(?<=gather\()|(?<=wait\()|(?<=wait_for\()|(?<=shield\()|(?<=as_completed\())"
        rb"\s*\*?[\w.]*?\.(\w+)"
    ),
    # `for t in x._tasks`
    re.compile(rb" in\s+(?:list\(|set\(|tuple\()?[\w.]*?\.(\w+)"),
)


def ended_names(content: bytes) -> set[str]:
    """The attribute names in a file that something is cancelled, joined or gone through by, on an
    object that need not be `self`."""
    found = {name for form in _JOINED for name in form.findall(content)}
    found.update(_cancelled(content))
    return {name.decode("ascii", "replace") for name in found}


def _cancelled(content: bytes) -> Iterator[bytes]:
    at = content.find(_CANCEL)
    while at != -1:
        line = content.rfind(b"\n", 0, at) + 1
        match = _CANCELLED.search(content[line : at + len(_CANCEL)])
        if match is not None:
            yield match[1]
        at = content.find(_CANCEL, at + 1)


def count_ended(contents: Iterable[bytes]) -> Counter[str]:
    """For each name, the number of files that end it."""
    return Counter(name for content in contents for name in ended_names(content))


class Elsewhere(Mapping[str, int]):
    """How many files end a name, without one of them. Nothing is copied: there is one for each
    file that is checked."""

    def __init__(self, ended: Mapping[str, int], own: Iterable[str] = ()) -> None:
        self._ended = ended
        self._own = frozenset(own)

    def __getitem__(self, name: str) -> int:
        files = self._ended[name] - (name in self._own)
        if files <= 0:
            raise KeyError(name)
        return files

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._ended if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Project:
    """The files that are checked together. Their modules are parsed when somebody asks.

    `paths` are the files by the full names of their modules; `ended` says for each attribute name
    how many files end it (`count_ended` counts them).
    """

    def __init__(
        self, paths: Mapping[str, str] | None = None, ended: Mapping[str, int] | None = None
    ) -> None:
        self._paths = dict(paths or {})
        self._ended = dict(ended or {})
        self.ended_elsewhere: Mapping[str, int] = Elsewhere(self._ended)
        self._modules: dict[str, Module | None] = {}

    def beside(self, content: bytes) -> Project:
        """The project as seen from one of its files: what that file ends is not elsewhere."""
        view = copy(self)
        view.ended_elsewhere = Elsewhere(self._ended, ended_names(content))
        return view

    def add(self, module: Module) -> None:
        self._modules[module.name] = module

    def module(self, name: str) -> Module | None:
        """The module of this full name, if it is one of the project's."""
        if name not in self._modules:
            self._modules[name] = None
            path = self._paths.get(name)
            if path is not None:
                self._modules[name] = self._read(path, name)
        return self._modules[name]

    def _read(self, path: str, name: str) -> Module | None:
        try:
            content = read(path)
            return Module(parse(path, content), name, self.beside(content))
        except (Broken, RecursionError):
            return None

    def find_class(self, name: str, depth: int = 0) -> Class | None:
        """The class of this full name, also where it is only handed on."""
        place, _, plain = name.rpartition(".")
        module = self.module(place) if place else None
        if module is None or depth > _HANDED_ON:
            return None
        if plain in module.classes:
            return module.classes[plain]
        handed = module.names.known(plain)
        return self.find_class(handed, depth + 1) if handed else None

    def find_function(self, name: str, depth: int = 0) -> Function | None:
        """The function of this full name, also where it is only handed on."""
        place, _, plain = name.rpartition(".")
        module = self.module(place) if place else None
        if module is None or depth > _HANDED_ON:
            return None
        found = module.find_function(plain)
        if found is not None:
            return found
        handed = module.names.known(plain)
        return self.find_function(handed, depth + 1) if handed else None
