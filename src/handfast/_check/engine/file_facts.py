"""What is known about a file before it is parsed: its facts, its module name and its project.

Files of one project are checked together, because one file may cancel or join what another starts.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b

from handfast._check.settings.settings import Settings
from handfast._check.source import is_of_interest

_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
# A text that begins with a literal is found quickly.
_FUNCTION = re.compile(rb"def \w+ *[(\[]")
_CREATING = (b"create_task(", b"ensure_future(", b"asyncio.Task(")
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the bytes of a file say."""

    of_interest: bool
    """Whether any rule could report something in it."""
    ended: tuple[str, ...]
    """The attributes whose tasks the file cancels or joins, and its `exported_names`."""
    functions: int = 0
    creations: int = 0
    """How many functions a file of interest has, and calls that create a task; by its text."""


def digest(*parts: bytes) -> str:
    """Return a hash that is the same for the same parts only."""
    state = blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


def facts_of(content: bytes) -> Facts:
    """Return the facts of a file, without parsing it."""
    of_interest = is_of_interest(content)
    if not of_interest and b".cancel(" not in content:
        return Facts(False, ())
    from handfast._check.model.syntax.project import ended_names, exported_names

    ended = tuple(sorted(ended_names(content) | exported_names(content)))
    functions = len(_FUNCTION.findall(content)) if of_interest else 0
    return Facts(of_interest, ended, functions, sum(map(content.count, _CREATING)))


@dataclass(frozen=True, slots=True)
class ModuleLocation:
    """Where a file is in the tree of packages and projects."""

    module: str
    """The name that it is imported by."""
    project: str
    """The folder of the files that it is checked together with."""
    package: str
    """The outermost folder that is a package; the file's own folder if it is in no package."""


@dataclass(slots=True)
class SourceFile:
    """One file that was read."""

    path: str
    key: str
    """The digest of its content."""
    facts: Facts
    location: ModuleLocation
    settings: Settings
    requested: bool
    """Whether to check it; otherwise it was only read because it is part of a requested package."""
    size: int
    content: bytes | None
    """None if no rule could report anything. A file is read once, so that what is checked and shown
    is what `key` is the digest of, even if the file changes meanwhile."""


@dataclass(slots=True)
class ProjectFiles:
    """The files of one project."""

    by_module: dict[str, SourceFile] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    """The number of files that end each attribute."""

    def key_of(self, module: str) -> str:
        """The digest of a module's content; empty if the project has no such module."""
        file = self.by_module.get(module)
        return "" if file is None else file.key


class ModuleLocator:
    """Finds the location of files; looks at each folder once."""

    def __init__(self) -> None:
        self._is_package: dict[str, bool] = {}
        self._folders: dict[str, tuple[str, str, str]] = {}
        self._project_above: dict[str, str] = {}

    def locate(self, path: str) -> ModuleLocation:
        """Return the location of the file with this absolute path."""
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = self._look(folder)
        prefix, project, package = self._folders[folder]
        stem = name.removesuffix(".py")
        module = prefix + stem
        if stem == "__init__":
            module = prefix.rstrip(".") or os.path.basename(folder)
        return ModuleLocation(module, project, package)

    def _look(self, folder: str) -> tuple[str, str, str]:
        top, root = folder, folder
        while self._has_init(root):
            top, root = root, os.path.dirname(root)
        inside = os.path.relpath(folder, root)
        prefix = "" if inside == "." else inside.replace(os.sep, ".") + "."
        # Installed packages are in one folder, but independent of each other.
        if os.path.basename(root) in _INSTALLED:
            return prefix, top, top
        return prefix, self._find_project(root) or top, top

    def _has_init(self, folder: str) -> bool:
        if folder not in self._is_package:
            exists = os.path.isfile(os.path.join(folder, "__init__.py"))
            # The root of the file system cannot be a package: it has no name.
            self._is_package[folder] = exists and os.path.dirname(folder) != folder
        return self._is_package[folder]

    def _find_project(self, folder: str) -> str:
        if folder not in self._project_above:
            parent = os.path.dirname(folder)
            if any(os.path.exists(os.path.join(folder, name)) for name in _PROJECT_FILES):
                self._project_above[folder] = folder
            else:
                self._project_above[folder] = self._find_project(parent) if parent != folder else ""
        return self._project_above[folder]
