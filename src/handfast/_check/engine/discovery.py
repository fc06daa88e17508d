"""Finds the files to check: the given files, and the Python files in the given folders.

Files that git ignores or that the settings exclude are left out, unless they are given by name.
Notebooks are never checked.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

STDIN = "-"
_SKIPPED = frozenset(
    {
        *(".bzr", ".git", ".git-rewrite", ".hg", ".svn"),
        *(".direnv", ".eggs", ".nox", ".pants.d", ".pyenv", ".tox", ".venv", ".vscode"),
        *(".handfast_cache", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache"),
        *(".pytest_cache", ".pytype", ".ruff_cache", "__pycache__", "__pypackages__"),
        *("_build", "buck-out", "build", "dist", "node_modules", "site-packages", "venv"),
    }
)
"""Folders that are left out, unless they are given by name."""

Excluded = Callable[[str, bool], bool]
"""Whether the settings exclude a path; the flag says whether it is a folder."""

# The repository may be one that the user has only downloaded: its settings must not start a program.
_GIT = ("git", "-c", "core.fsmonitor=false")
_LIST = ("ls-files", "--cached", "--others", "--exclude-standard", "-z")
# Seconds that git may take: it waits for ever for a pipe in place of a `.gitignore`.
_GIT_SECONDS = 60.0
# A hook of git sets these, for the repository that it runs in.
_GIT_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


class NoSuchPath(ValueError):
    """A given path does not exist."""


@dataclass(slots=True)
class Found:
    """The files to check, and the given ones that cannot be checked."""

    files: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    listings: list[set[str]] = field(default_factory=list)
    """What git has listed. A later search in one of these folders needs no other process."""


def find(
    paths: Iterable[str],
    excluded: Excluded = lambda path, is_folder: False,
    listings: Iterable[set[str]] = (),
) -> Found:
    """Return the files of `paths`, each once, sorted within its folder."""
    found = Found(listings=list(listings))
    seen: set[str] = set()
    for path in paths:
        for file in _files_of(path, excluded, found):
            whole = file if file == STDIN else os.path.abspath(file)
            if whole not in seen:
                seen.add(whole)
                found.files.append(file if file == STDIN else shown(whole))
    return found


def shown(path: str) -> str:
    """Return a path as it is shown: relative if it is in the current folder."""
    here = os.getcwd()
    inside = path.startswith(here if here.endswith(os.sep) else here + os.sep)
    return os.path.relpath(path, here) if inside else path


def _files_of(path: str, excluded: Excluded, found: Found) -> Iterator[str]:
    if path == STDIN:
        yield path
    elif os.path.isdir(path):
        whole = os.path.abspath(path)
        known = () if _is_repository(whole) else found.listings
        listed = next((each for each in known if whole in each), None)
        if listed is None and (listed := _not_ignored(whole)) is not None:
            found.listings.append(listed)
        yield from _walk(whole, listed, excluded)
    elif not os.path.exists(path):
        raise NoSuchPath(f"there is no file or folder {path!r}")
    elif path.endswith(".ipynb"):
        found.not_checked.append(path)
    else:
        yield path


def _walk(folder: str, listed: set[str] | None, excluded: Excluded) -> Iterator[str]:
    """Yield the Python files in a folder; `listed` are the files and folders that git lists."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:  # no permission; git and ruff skip such a folder, too
        return
    for entry in entries:
        path, is_folder = entry.path, entry.is_dir(follow_symlinks=False)
        if is_folder:
            if entry.name in _SKIPPED:
                continue
        elif not entry.name.endswith(".py"):
            continue
        elif not entry.is_file(follow_symlinks=False) and not os.path.isfile(path):
            continue  # a pipe, or a symbolic link to nothing
        if (listed is not None and path not in listed) or excluded(path, is_folder):
            continue
        if not is_folder:
            yield path
        elif _is_repository(path):
            # A submodule or another repository: git has listed only its folder.
            yield from _walk(path, _not_ignored(path), excluded)
        else:
            yield from _walk(path, listed, excluded)


def _not_ignored(folder: str) -> set[str] | None:
    """Return the Python files in a folder that git does not ignore, with the folders around them.

    None means all files: the folder is in no repository, is itself ignored but was given by name,
    or there is no git that reads it.
    """
    if not _is_in_repository(folder):
        return None
    listing = _git(folder, *_LIST)
    if listing is None or (
        not listing and _git(folder, "check-ignore", "--quiet", ".") is not None
    ):
        return None
    listed: set[str] = set()
    for name in os.fsdecode(listing).split("\0")[:-1]:
        path = os.path.join(folder, name.rstrip("/").replace("/", os.sep))
        if name.endswith(".py") or os.path.isdir(path):  # a folder here is another repository
            while path not in listed and path != folder:
                listed.add(path)
                path = os.path.dirname(path)
    return listed


def _is_repository(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, ".git"))


def _is_in_repository(folder: str) -> bool:
    while not _is_repository(folder):
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return True


def _git(folder: str, *arguments: str) -> bytes | None:
    """Return the output of git in a folder; None if it fails."""
    environment = {key: value for key, value in os.environ.items() if key not in _GIT_VARIABLES}
    try:
        done = subprocess.run(
            (*_GIT, *arguments),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
