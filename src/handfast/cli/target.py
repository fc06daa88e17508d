"""Find the function that a command runs: `package.module:function` or `path/to/file.py:function`.

An error says what is wrong with the name, and suggests a similar one.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from handfast._did_you_mean import suggest

Program = Callable[[], Coroutine[Any, Any, Any]]


class BadTarget(ValueError):
    """The function does not exist, or cannot be run."""


def find(target: str) -> Program:
    """Return the async function that `target` names."""
    place, colon, name = target.rpartition(":")
    if not (place and colon and name):
        raise BadTarget(f"{target!r} names no function: write package.module:function")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _file(Path(place)) if place.endswith(".py") else _module(place)
    return _checked(_attribute(module, name), target)


def near(word: str, words: Iterable[str]) -> str:
    """Return a question that names up to three similar words; empty if there is none."""
    found = suggest(word, words, most=3)
    return f" Did you mean {' or '.join(found)}?" if found else ""


# --- the module --------------------------------------------------------------------------------


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        # The missing one may be a module that this one imports.
        if name == missing or name.startswith(f"{missing}."):
            raise BadTarget(f"no module is called {missing!r}.{_near_modules(missing)}") from None
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        beside = [str(path.with_name(each.name)) for each in path.parent.glob("*.py")]
        raise BadTarget(f"there is no file {str(path)!r}.{near(str(path), beside)}")
    folder = str(path.parent.resolve())
    if folder not in sys.path:  # as for a script, which can import files beside it
        sys.path.insert(0, folder)
    name = path.stem
    if name in sys.modules:
        name = f"handfast_explores_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _broken(str(path), error) from error
    return module


def _broken(name: str, error: BaseException) -> BadTarget:
    where = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if "importlib" not in frame.filename:
            where = f" ({frame.filename}:{frame.lineno})"
    return BadTarget(f"{name} cannot be imported: {type(error).__name__}: {error}{where}")


def _near_modules(name: str) -> str:
    package, dot, _ = name.rpartition(".")
    places = None
    if dot:
        places = list(getattr(sys.modules.get(package), "__path__", []))
    return near(name, (f"{package}{dot}{each.name}" for each in pkgutil.iter_modules(places)))


# --- the function ------------------------------------------------------------------------------


def _attribute(module: ModuleType, name: str) -> object:
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            there = [each for each in dir(found) if not each.startswith("_")]
            raise BadTarget(f"{module.__name__} has no {name!r}.{near(part, there)}")
        found = getattr(found, part)
    return found


def _checked(found: Any, target: str) -> Program:
    call = found if inspect.isroutine(found) else getattr(found, "__call__", None)  # noqa: B004
    if not (inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(call)):
        raise BadTarget(f"{target} is not an async function")
    needed = [
        name
        for name, parameter in inspect.signature(found).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise BadTarget(
            f"{target} needs {', '.join(needed)}: write an async function without arguments "
            "that calls it"
        )
    program: Program = found
    return program
