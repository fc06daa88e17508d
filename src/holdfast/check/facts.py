"""What one file tells about the others: whether it is worth parsing, and what it ends.

And where a file stands: the name that its module is imported by, and the project that it is of.
Files of one project are read together, because one may end what the other starts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b

from holdfast.check.source import is_of_interest

__all__ = ["Facts", "Standing", "Where", "digest", "facts_of"]

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the bytes of a file say."""

    of_interest: bool
    ended: tuple[str, ...]
    """Attributes that something is cancelled or joined by."""


def digest(*parts: bytes) -> str:
    """A name for content: the same for the same, and for nothing else."""
    state = blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


def facts_of(content: bytes) -> Facts:
    """Read the bytes of a file; nothing is parsed."""
    of_interest = is_of_interest(content)
    if not of_interest and b".cancel(" not in content:
        return Facts(False, ())
    from holdfast.check.model.project import ended_names

    return Facts(of_interest, tuple(sorted(ended_names(content))))


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a file stands."""

    module: str
    """The name that it is imported by."""
    project: str
    """The folder of what it is checked together with."""
    package: str
    """The outermost folder that is a package; for a lone module, the folder that it lies in."""


class Where:
    """Finds out where files stand; each folder is looked at once."""

    def __init__(self) -> None:
        self._is_package: dict[str, bool] = {}
        self._folders: dict[str, tuple[str, str, str]] = {}
        self._marked: dict[str, str] = {}

    def of(self, path: str) -> Standing:
        """Where a file stands, by its absolute path."""
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = self._look(folder)
        prefix, project, package = self._folders[folder]
        stem = name.removesuffix(".py")
        if stem == "__init__":
            return Standing(prefix.rstrip(".") or os.path.basename(folder), project, package)
        return Standing(prefix + stem, project, package)

    def _look(self, folder: str) -> tuple[str, str, str]:
        top, root = folder, folder
        while self._has_init(root):
            top, root = root, os.path.dirname(root)
        inside = os.path.relpath(folder, root)
        prefix = "" if inside == "." else inside.replace(os.sep, ".") + "."
        return prefix, self._project_of(root, top), top

    def _has_init(self, folder: str) -> bool:
        if folder not in self._is_package:
            there = os.path.isfile(os.path.join(folder, "__init__.py"))
            # A file at the root of everything would be a package without a name.
            self._is_package[folder] = there and os.path.dirname(folder) != folder
        return self._is_package[folder]

    def _project_of(self, root: str, package: str) -> str:
        # Installed packages lie side by side, and have nothing to do with each other.
        if os.path.basename(root) in _INSTALLED:
            return package
        return self._marked_above(root) or package

    def _marked_above(self, folder: str) -> str:
        if folder not in self._marked:
            parent = os.path.dirname(folder)
            if any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKS):
                self._marked[folder] = folder
            else:
                self._marked[folder] = self._marked_above(parent) if parent != folder else ""
        return self._marked[folder]
