"""Whose code is this line: the program's, a library's, the standard library's or our own?

Reports name the program's line and not the library's, the explorer cancels only tasks that the
program creates, and await stacks leave out our own frames. All of them ask here.

A file belongs to the first of these that claims it:

1. this package, by its own folder, at any depth;
2. an installed package: a `site-packages` folder, the folder of console scripts, or any other
   `sys.path` folder that pip has filled (`pip install --target`);
3. the standard library;
4. the program. Editable installs are the program's, since they lie in its own source tree. So is
   code without a file (`<string>`, `<stdin>`), which the program has compiled itself.

Paths are compared by prefix and never by `dirname(...) ==`, so that a module may move into a
subfolder without changing any answer. This module imports nothing of the package.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Literal, TypeAlias

CodeOwner: TypeAlias = Literal["program", "library", "stdlib", "handfast"]
PackagePart: TypeAlias = Literal[
    "census",
    "explore",
    "explore.processes",
    "explore.simulation",
    "explore.threads",
    "runtime",
]

# The parts of this package that some callers treat differently from the rest of it, each with every
# folder or module that it consists of. This is the only place that names them: who moves one of
# them changes its entry here (`tests/test_code_owner.py` fails if an entry matches no file).
_PARTS: dict[PackagePart, tuple[str, ...]] = {
    "census": ("_census",),
    "explore": ("explore", "_explore", "_explorer_internals", "scripted", "types"),
    "explore.processes": ("_explore/simulation/processes",),
    "explore.simulation": ("_explore/simulation",),
    "explore.threads": ("_explore/simulation/threads",),
    "runtime": ("_runtime", "_await_stack", "_asyncio_internals"),
}

_PACKAGE_NAME = __name__.rpartition(".")[0]
_PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_STDLIB = os.path.join(os.path.dirname(os.__file__), "")
_ASYNCIO = os.path.join(_STDLIB, "asyncio", "")
# Of whatever interpreter: a virtual environment has two, and a baseline may name a third.
_SITE_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
_ANY_STDLIB = re.compile(r".*[/\\]lib[/\\]python3\.\d+[/\\]")


def _path_prefixes(place: str) -> tuple[str, str]:
    path = _PACKAGE + place.replace("/", os.sep)
    return path + os.sep, path + ".py"


_PATHS: dict[PackagePart, tuple[str, ...]] = {
    part: tuple(prefix for place in places for prefix in _path_prefixes(place))
    for part, places in _PARTS.items()
}
_MODULES: dict[PackagePart, tuple[str, ...]] = {
    part: tuple(f"{_PACKAGE_NAME}.{place.replace('/', '.')}" for place in places)
    for part, places in _PARTS.items()
}


# --- the answer ----------------------------------------------------------------------------------


@functools.cache
def code_owner(filename: str) -> CodeOwner:
    """Whose code a file (the `co_filename` of a code object) holds."""
    with UnseenByLoop():
        return _owner(filename)


def _owner(filename: str) -> CodeOwner:
    if not os.path.isabs(filename):
        return "stdlib" if filename.startswith("<frozen ") else "program"
    if filename.startswith(_PACKAGE):
        return "handfast"
    # Most site-packages folders lie inside that of the standard library, so they come first.
    if _packages_folder(filename) is not None or filename.startswith(_scripts_folder()):
        return "library"
    if _stdlib_folder(filename) is not None:
        return "stdlib"
    return "library" if _filled_folder(filename) is not None else "program"


def is_program(filename: str) -> bool:
    """Whether a file is the program's own."""
    return code_owner(filename) == "program"


def in_package(filename: str, *parts: PackagePart) -> bool:
    """Whether a file belongs to one of these parts of this package."""
    if not filename.startswith(_PACKAGE):  # most files are not, and frames are many
        return False
    return any(filename.startswith(_PATHS[part]) for part in parts)


def module_in_package(module: str, *parts: PackagePart) -> bool:
    """The same for the name of a module, which is all that some objects tell of themselves."""
    return any(
        module == name or module.startswith(f"{name}.") for part in parts for name in _MODULES[part]
    )


def in_stdlib_module(filename: str, *modules: str) -> bool:
    """Whether a file belongs to one of these modules or packages of the standard library."""
    return any(
        filename.startswith((f"{_STDLIB}{name}{os.sep}", f"{_STDLIB}{name}.py")) for name in modules
    )


def is_asyncio(filename: str) -> bool:
    """Whether a file is one of asyncio's own."""
    return filename.startswith(_ASYNCIO)


def is_machinery(filename: str, *parts: PackagePart) -> bool:
    """Whether a file is asyncio's, or of these parts of this package.

    Frames of these run the program. A reader wants to see them only where there are no others.
    """
    return filename.startswith(_ASYNCIO) or in_package(filename, *parts)


class UnseenByLoop:
    """Lets this package block for a moment, or look at files, while an event loop runs.

    Tools that find blocking calls of the program, such as blockbuster, ask for the running loop.
    Not a `@contextmanager`: on 3.11 the first reduced search of a process then took 30 schedules, and
    not 25 (`test_the_reduced_search_takes_the_same_schedules_with_any_number_of_workers`).
    """

    __slots__ = ("_loop",)

    def __enter__(self) -> None:
        asyncio: Any = sys.modules.get("asyncio")
        running = getattr(asyncio, "_get_running_loop", None)  # it may be half imported
        self._loop = running() if running is not None else None
        if self._loop is not None:
            asyncio._set_running_loop(None)

    def __exit__(self, *_: object) -> None:
        if self._loop is not None:
            sys.modules["asyncio"]._set_running_loop(self._loop)


# --- frames --------------------------------------------------------------------------------------


def first_program_frame(
    frame: FrameType | None, end: Callable[[str], bool] | None = None
) -> FrameType | None:
    """The innermost frame of the program, at or above `frame`.

    The search stops at the first frame for whose file `end` is true: what lies further out runs
    the program, and is no part of it.
    """
    while frame is not None:
        filename = frame.f_code.co_filename
        if end is not None and end(filename):
            return None
        if is_program(filename):
            return frame
        frame = frame.f_back
    return None


def made_by_program(frame: FrameType | None) -> bool:
    """Whether the program itself makes something, a task or a timer, in this frame.

    Asyncio and the explorer's loop only pass the call on. A library between them and the program
    makes it for its own use.
    """
    while frame is not None:
        maker = _maker(frame.f_code.co_filename)
        if maker is not None:
            return maker == "program"
        frame = frame.f_back
    return False


# The explorer asks for every task of every run.
@functools.cache
def _maker(filename: str) -> CodeOwner | None:
    """The owner of a file, None if it only passes calls on.

    The simulated network, processes and threads make tasks and timers for their own use.
    """
    if is_asyncio(filename):
        return None
    if in_package(filename, "explore") and not in_package(filename, "explore.simulation"):
        return None
    return code_owner(filename)


# --- installed code ------------------------------------------------------------------------------


def installed_path(filename: str) -> str | None:
    """A library's or the standard library's file, relative to the folder that it is installed in.

    This is the same on every machine. None if the file is not installed.
    """
    folder = _install_folder(filename)
    return None if folder is None else filename[len(folder) :].replace(os.sep, "/")


def installed_project(filename: str) -> str:
    """The top-level name of the installed package that a file belongs to; empty if to none."""
    if filename.startswith(_PACKAGE):
        return _PACKAGE_NAME
    path = installed_path(filename) if code_owner(filename) == "library" else None
    return path.partition("/")[0].removesuffix(".py") if path else ""


def _install_folder(filename: str) -> str | None:
    owner = code_owner(filename)
    if owner == "library":
        return _packages_folder(filename) or _filled_folder(filename)
    return _stdlib_folder(filename) if owner == "stdlib" else None


def _packages_folder(filename: str) -> str | None:
    found = _SITE_PACKAGES.match(filename)
    return found[0] if found else _first_prefix(filename, _packages_folders())


def _stdlib_folder(filename: str) -> str | None:
    found = _ANY_STDLIB.match(filename)
    return found[0] if found else _first_prefix(filename, _stdlib_folders())


def _first_prefix(filename: str, folders: tuple[str, ...]) -> str | None:
    return next((folder for folder in folders if filename.startswith(folder)), None)


# `site` and `sysconfig` are read when the first question comes: importing the package stays cheap.
@functools.cache
def _packages_folders() -> tuple[str, ...]:
    import site
    import sysconfig

    folders = [*map(sysconfig.get_path, ("purelib", "platlib")), *site.getsitepackages()]
    folders.append(site.getusersitepackages())
    return tuple({os.path.join(folder, "") for folder in folders})


@functools.cache
def _stdlib_folders() -> tuple[str, ...]:
    import sysconfig

    folders = map(sysconfig.get_path, ("stdlib", "platstdlib"))
    return tuple({_STDLIB, *(os.path.join(folder, "") for folder in folders)})


@functools.cache
def _scripts_folder() -> str:
    import sysconfig

    return os.path.join(sysconfig.get_path("scripts"), "")


def _filled_folder(filename: str) -> str | None:
    """The `sys.path` folder that pip has put this file into (`pip install --target`)."""
    roots = {os.path.abspath(entry or ".") for entry in sys.path}
    for folder in _parents(filename):
        if folder in roots:
            root = os.path.join(folder, "")
            top = filename[len(root) :].partition(os.sep)[0]
            names = _installed_names(folder)
            return root if names is None or top in names else None
    return None


def _parents(filename: str) -> Iterator[str]:
    folder = os.path.normpath(filename)
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        yield folder


@functools.cache
def _installed_names(folder: str) -> frozenset[str] | None:
    """The top-level names that the packages in a folder have brought, None if one does not say.

    The program's own modules may lie in the same folder, as AWS Lambda wants it.
    """
    try:
        metadata = [entry for entry in os.listdir(folder) if entry.endswith(".dist-info")]
    except OSError:  # a zip archive
        return frozenset()
    names: set[str] = set()
    for entry in metadata:
        try:
            with open(os.path.join(folder, entry, "RECORD"), encoding="utf-8") as record:
                # A line is `path,hash,size`. A path with a comma is quoted.
                names.update(
                    line.lstrip('"').partition(",")[0].partition("/")[0] for line in record
                )
        except OSError:
            return None
    return frozenset(names)
