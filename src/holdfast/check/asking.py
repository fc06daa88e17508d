"""A project that notes who asks it for what, so that a result is known by all that it came from.

An answer may be remembered with the module that asked first. So it is noted for each module what
was ever asked from there, and a result depends on all that can be reached that way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from copy import copy

from holdfast.check.model.function import Function
from holdfast.check.model.module import Module
from holdfast.check.model.project import Elsewhere, Project, ended_names
from holdfast.check.source import Broken, parse, read

__all__ = ["Asking"]


class _Noted(Mapping[str, int]):
    """What is ended elsewhere; every name that is asked for is noted."""

    def __init__(self, ended: Mapping[str, int], names: set[str]) -> None:
        self._ended = ended
        self._names = names

    def __getitem__(self, name: str) -> int:
        self._names.add(name)
        return self._ended[name]

    def __iter__(self) -> Iterator[str]:
        self._names.update(self._ended)
        return iter(self._ended)

    def __len__(self) -> int:
        return len(self._ended)


class Asking(Project):
    """The project, as seen from one of its modules."""

    def __init__(
        self,
        paths: Mapping[str, str],
        ended: Mapping[str, int],
        ended_by: Mapping[str, Iterable[str]],
        quiet: Container[str] = (),
    ) -> None:
        super().__init__(paths, ended)
        self._from = ""
        self._ended_by = ended_by
        self._quiet = quiet
        self._parsed: list[int] = []
        self._modules_asked: defaultdict[str, set[str]] = defaultdict(set)
        self._names_asked: defaultdict[str, set[str]] = defaultdict(set)

    def seen_from(self, name: str, content: bytes) -> Asking:
        """The view of one module."""
        view = copy(self)
        own = self._ended_by.get(name)
        if own is None:
            own = ended_names(content)
        view.ended_elsewhere = _Noted(Elsewhere(self._ended, own), self._names_asked[name])
        view._from = name
        return view

    def module(self, name: str) -> Module | None:
        self._modules_asked[self._from].add(name)
        return super().module(name)

    def find_function(self, name: str, depth: int = 0) -> Function | None:
        place = name.rpartition(".")[0]
        if place in self._quiet:
            # It can neither cancel nor join: not worth parsing its file.
            self._modules_asked[self._from].add(place)
            return None
        return super().find_function(name, depth)

    def _read(self, path: str, name: str) -> Module | None:
        try:
            content = read(path)
            self._parsed.append(len(content))
            return Module(parse(path, content), name, self.seen_from(name, content))
        except (Broken, RecursionError):
            return None

    def known(self, name: str) -> Module | None:
        """A module that somebody has asked for already."""
        return self._modules.get(name)

    def at(self, path: str) -> Module | None:
        """The module of a file, if it was parsed."""
        found = (each for each in self._modules.values() if each is not None)
        return next((each for each in found if each.path == path), None)

    def asked_from(self, name: str) -> tuple[set[str], set[str]]:
        """What a result about this module rests on: modules, and names that are ended."""
        modules: set[str] = set()
        todo = [name]
        while todo:
            for each in self._modules_asked.get(todo.pop(), ()):
                if each not in modules:
                    modules.add(each)
                    todo.append(each)
        reached = modules | {name}
        names = {word for each in reached for word in self._names_asked.get(each, ())}
        return modules, names

    def forget(self) -> None:
        """Lets go of all modules; nothing may be asked any more."""
        for module in self._modules.values():
            if module is not None:
                module.forget()

    @property
    def parsed(self) -> int:
        """How many bytes were parsed because somebody asked."""
        return sum(self._parsed)
