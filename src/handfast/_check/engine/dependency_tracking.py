"""A project that records what each module has used of it.

The model remembers answers with the module that needed them first. So the uses of each module are
recorded separately, and a result depends on all that can be reached from its module that way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import copy

from handfast._check.engine.file_facts import ProjectFiles, digest
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.syntax.project import Elsewhere, Project, ended_names, exported_names
from handfast._check.source import SourceError, parse, read


class _TrackedNames(Mapping[str, int]):
    """What other files end; records every name that is looked up."""

    def __init__(self, ended: Mapping[str, int], used: set[str]) -> None:
        self._ended = ended
        self._used = used

    def __getitem__(self, name: str) -> int:
        self._used.add(name)
        return self._ended[name]

    def __iter__(self) -> Iterator[str]:
        self._used.update(self._ended)
        return iter(self._ended)

    def __len__(self) -> int:
        return len(self._ended)


class TrackedProject(Project):
    """The project, as seen from one of its modules."""

    def __init__(self, files: ProjectFiles) -> None:
        paths = {module: file.path for module, file in files.by_module.items()}
        super().__init__(paths, files.ended)
        self.files = files
        self._viewer = ""
        self._sizes: dict[str, int] = {}
        self._used_modules: defaultdict[str, set[str]] = defaultdict(set)
        self._used_names: defaultdict[str, set[str]] = defaultdict(set)

    def view_of(self, name: str, content: bytes) -> TrackedProject:
        """Return the project as seen from one of its modules; all views share their records."""
        view = copy(self)
        file = self.files.by_module.get(name)
        own: Iterable[str] = (
            ended_names(content) | exported_names(content) if file is None else file.facts.ended
        )
        view.ended_elsewhere = _TrackedNames(Elsewhere(self._ended, own), self._used_names[name])
        view._viewer = name
        return view

    def module(self, name: str) -> Module | None:
        self._used_modules[self._viewer].add(name)
        return super().module(name)

    def find_function(self, name: str, depth: int = 0) -> Function | None:
        place = name.rpartition(".")[0]
        file = self.files.by_module.get(place)
        if file is not None and not file.facts.of_interest and not file.facts.ended:
            # It can neither cancel nor join: not worth parsing its file.
            self._used_modules[self._viewer].add(place)
            return None
        return super().find_function(name, depth)

    def _read(self, path: str, name: str) -> Module | None:
        try:
            file = self.files.by_module[name]
            content = file.content
            if content is None:
                content = read(path)
                file.key = digest(content)  # a result must depend on what was read now
            self._sizes[name] = len(content)
            return Module(parse(path, content), name, self.view_of(name, content))
        except (SourceError, RecursionError):
            return None

    def parsed_module(self, name: str) -> Module | None:
        """Return a module if it is parsed already."""
        return self._modules.get(name)

    def at(self, path: str) -> Module | None:
        """Return the module of a file if it is parsed already."""
        found = (each for each in self._modules.values() if each is not None)
        return next((each for each in found if each.path == path), None)

    def dependencies_of(self, name: str) -> tuple[set[str], set[str]]:
        """Return what a result about a module depends on: modules, and names that are ended."""
        modules: set[str] = set()
        todo = [name]
        while todo:
            new = self._used_modules.get(todo.pop(), set()) - modules
            modules |= new
            todo += new
        names = (self._used_names.get(each, set()) for each in modules | {name})
        return modules, set().union(*names)

    def forget(self, kept: int = 0) -> None:
        """Drop the trees of the modules, except for `kept` bytes of those that others needed most often.

        Most files of a large project import the same few modules, which would be parsed again and again.
        """
        uses = Counter(name for used in self._used_modules.values() for name in used)
        often = sorted(self._sizes, key=lambda name: (-uses[name], name))
        hubs: set[str] = set()
        for name in often:
            if uses[name] > 1 and self._sizes[name] <= kept:
                hubs.add(name)
                kept -= self._sizes[name]
        for name, module in list(self._modules.items()):
            if name in hubs and module is not None:
                module.forget_others()
                continue
            del self._modules[name]
            if module is not None:
                module.forget()
        # In place: the views of the modules share it.
        for name in self._sizes.keys() - hubs:
            del self._sizes[name]

    @property
    def parsed(self) -> int:
        """The number of bytes of the modules that were parsed because another one needed them."""
        return sum(self._sizes.values())
