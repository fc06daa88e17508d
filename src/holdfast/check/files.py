"""Which files are checked: those that are named, and the Python files of the folders that are.

What git ignores is left alone, and so is what a settings file excludes, unless it is named itself.
Notebooks are left alone in any case.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.check.gitignore import Patterns

__all__ = ["STDIN", "Found", "NoSuchPath", "find", "shown"]

STDIN = "-"
_SKIPPED = frozenset(
    {
        *(".bzr", ".git", ".git-rewrite", ".hg", ".svn"),
        *(".direnv", ".eggs", ".nox", ".pants.d", ".pyenv", ".tox", ".venv", ".vscode"),
        *(".holdfast_cache", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache"),
        *(".pytest_cache", ".pytype", ".ruff_cache", "__pycache__", "__pypackages__"),
        *("_build", "buck-out", "build", "dist", "node_modules", "site-packages", "venv"),
    }
)
"""Folders that are not entered, unless they are named."""

Excluded = Callable[[str, bool], bool]
"""Whether the settings exclude a path; the flag says that it is a folder."""


class NoSuchPath(ValueError):
    """A path that was asked for is not there."""


@dataclass(slots=True)
class Found:
    """The files to check, and what was named but is none of ours."""

    files: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)


def find(paths: Iterable[str], excluded: Excluded = lambda path, is_folder: False) -> Found:
    """The files behind `paths`, each once, sorted within its folder."""
    found = Found()
    seen: set[str] = set()
    for path in paths:
        for file in _behind(path, excluded, found.not_checked):
            whole = file if file == STDIN else os.path.abspath(file)
            if whole not in seen:
                seen.add(whole)
                found.files.append(file if file == STDIN else shown(whole))
    return found


def shown(path: str) -> str:
    """How a path is written: as seen from here, if it lies below."""
    here = os.getcwd()
    inside = path.startswith(here if here.endswith(os.sep) else here + os.sep)
    return os.path.relpath(path, here) if inside else path


def _behind(path: str, excluded: Excluded, not_checked: list[str]) -> Iterator[str]:
    if path == STDIN:
        yield path
    elif os.path.isdir(path):
        whole = os.path.abspath(path)
        yield from _walk(whole, _above(whole), excluded)
    elif not os.path.exists(path):
        raise NoSuchPath(f"there is no file or folder {path!r}")
    elif path.endswith(".ipynb"):
        not_checked.append(path)
    else:
        yield path


Ignoring = tuple[tuple[str, Patterns], ...]
"""Folders with a .gitignore, the outermost first, each with a separator at its end."""


def _walk(folder: str, ignoring: Ignoring, excluded: Excluded) -> Iterator[str]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:  # nobody may look into it: git and ruff go on, too
        return
    if any(entry.name == ".gitignore" for entry in entries):
        ignoring = (*ignoring, *_patterns(folder, ".gitignore"))
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder:
            if entry.name in _SKIPPED:
                continue
        elif not entry.name.endswith(".py") or not os.path.isfile(entry.path):
            continue
        if ignoring and _is_ignored(entry.path, is_folder, ignoring):
            continue
        if excluded(entry.path, is_folder):
            continue
        if is_folder:
            yield from _walk(entry.path, ignoring, excluded)
        else:
            yield entry.path


def _is_ignored(path: str, is_folder: bool, ignoring: Ignoring) -> bool:
    # The innermost file has the last word.
    for folder, patterns in reversed(ignoring):
        relative = path[len(folder) :].replace(os.sep, "/")
        verdict = patterns.judge(relative, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def _above(folder: str) -> Ignoring:
    """What counts for a folder from outside: the files between it and the root of its repository."""
    between: list[str] = []
    up = folder
    while not os.path.exists(os.path.join(up, ".git")):
        parent = os.path.dirname(up)
        if parent == up:
            return ()  # in no repository: what lies around it has nothing to say
        up = parent
        between.append(up)
    outer = [each for path in reversed(between) for each in _patterns(path, ".gitignore")]
    return (*_patterns(up, os.path.join(".git", "info", "exclude")), *outer)


def _patterns(folder: str, name: str) -> Iterator[tuple[str, Patterns]]:
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            patterns = Patterns(file)
    except OSError:
        return
    if patterns:
        yield (folder if folder.endswith(os.sep) else folder + os.sep), patterns
