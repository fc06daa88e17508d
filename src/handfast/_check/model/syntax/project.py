"""The files that are checked together: classes across files, and what any file cancels or joins.

A rule that reports "never" looks here first, because another file may do it. The attribute names come
from regular expressions over the bytes of all files: most files have no asyncio code and are never
parsed. That finds too many names, which costs findings and causes no false alarm.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property

from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.source import SourceError, parse, read

# Re-exports are followed this far: `pkg/__init__.py` imports a name that a module imports, and so on.
_REEXPORTS = 5

# Each pattern begins with a rare literal, which the regular expression engine finds quickly.
_CANCEL = b".cancel("
# Bytes before it that are looked at: a generated line may be as long as a file.
_BEFORE_CANCEL = 400
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
    # `for t in x._tasks`: the loop may cancel or await each; its body is not looked at.
    re.compile(rb" in\s+(?:list\(|set\(|tuple\()?[\w.]*?\.(\w+)"),
)


def ended_names(content: bytes) -> set[str]:
    """The attribute names that a file cancels, joins or iterates, on any object."""
    found = {name for form in _JOINED for name in form.findall(content)}
    found.update(_cancelled(content))
    return {name.decode("ascii", "replace") for name in found}


def _cancelled(content: bytes) -> Iterator[bytes]:
    at = content.find(_CANCEL)
    while at != -1:
        earliest = max(0, at - _BEFORE_CANCEL)
        start = max(content.rfind(b"\n", earliest, at) + 1, earliest)
        match = _CANCELLED.search(content[start : at + len(_CANCEL)])
        if match is not None:
            yield match[1]
        at = content.find(_CANCEL, at + 1)


# A function or a class at the top of a file, up to the next one. By the text, as above: a file whose
# functions and classes do none of this is not worth parsing for the sake of another file.
_TOP = re.compile(rb"^(async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)
# Not `async_create_task`: that is a method of a framework, which tracks its tasks.
_CREATING = re.compile(rb"\b(?:create_task\b|ensure_future\b|asyncio\.async\b|Task\()")
# Possessive: a line of many `=` is looked at once.
_CLEARING = re.compile(rb"^[ \t]++(?:[^\n#=]*+=[^\n]*\bNone$|del )", re.MULTILINE)
_COROUTINE = b"\nasync def "
_ASYNC = "async_def_"
_CLOSING = re.compile(
    rb"def (?:_*(?:a|async_|do_|on_)?(?:shut_down|clean_up|tear_down|dispose|release|cancel|finish|exit"
    rb"|destroy|unload|join|drain|end|quit)|\w*(?:close|stop|disconnect|lost|shutdown|teardown|kill"
    rb"|cleanup|terminate)|__a?exit__|__del__)"
)


def creates_tasks(content: bytes) -> bool:
    """Whether a text has a call that creates a task which no framework tracks."""
    return _CREATING.search(content) is not None


def has_closing(content: bytes) -> bool:
    """Whether a text defines a function that ends something, by its name."""
    return _CLOSING.search(content) is not None


def _coroutine_functions(content: bytes) -> Iterator[str]:
    """The coroutine functions at the top of a file. A plain search: this runs on every file."""
    for part in content.split(_COROUTINE)[1:]:
        name = part[: part.find(b"(", 0, 200)].strip()
        if name.replace(b"_", b"").isalnum():
            yield name.decode("ascii", "replace")


def exported_names(content: bytes) -> set[str]:
    """What other files may need of a file: the functions at its top that may return a task, each as
    `name()`, the classes that may create one, as `class name`, those that may clear an attribute
    when they end, as `clears name`, and the coroutine functions at its top, as `async_def_name`."""
    # An identifier, unlike the others: it does not decide which files are parsed.
    found = {f"{_ASYNC}{name}" for name in _coroutine_functions(content)}
    creates = creates_tasks(content)
    tops = list(_TOP.finditer(content)) if creates or has_closing(content) else []
    ends = [*(each.start() for each in tops[1:]), len(content)]
    for top, end in zip(tops, ends, strict=False):
        body = content[top.start() : end]
        name = top[2].decode("ascii", "replace")
        made = creates and creates_tasks(body)
        if top[1] == b"def" and made and b"return" in body:
            found.add(f"{name}()")
        elif top[1] == b"class":
            if made:
                found.add(f"class {name}")
            if (made or has_closing(body)) and _CLEARING.search(body):
                found.add(f"clears {name}")
    return found


def count_ended(contents: Iterable[bytes]) -> Counter[str]:
    """For each name, the number of files that end it, or that export it."""
    return Counter(
        name for content in contents for name in ended_names(content) | exported_names(content)
    )


class Elsewhere(Mapping[str, int]):
    """How many files end a name, without one of them. It copies nothing, because there is one for
    each file that is checked."""

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
    """The files that are checked together. A module is parsed when it is first needed.

    `paths` are the files by the full names of their modules; `ended` has for each attribute name the
    number of files that end it (see `count_ended`).
    """

    def __init__(
        self, paths: Mapping[str, str] | None = None, ended: Mapping[str, int] | None = None
    ) -> None:
        self._paths = dict(paths or {})
        self._ended = dict(ended or {})
        self.ended_elsewhere: Mapping[str, int] = Elsewhere(self._ended)
        self._modules: dict[str, Module | None] = {}

    def beside(self, content: bytes) -> Project:
        """The project as seen from one of its files: what that file ends is not ended elsewhere."""
        view = copy(self)
        view.ended_elsewhere = Elsewhere(
            self._ended, ended_names(content) | exported_names(content)
        )
        return view

    @cached_property
    def task_makers(self) -> frozenset[str]:
        """The names of the functions that may return a task, in any file."""
        return frozenset(name[:-2] for name in self._ended if name.endswith("()"))

    @cached_property
    def task_owners(self) -> frozenset[str]:
        """The names of the classes that may create a task, in any file."""
        return self._named("class ")

    @cached_property
    def clearing_classes(self) -> frozenset[str]:
        """The names of the classes that may clear an attribute when they end, in any file."""
        return self._named("clears ")

    def _named(self, prefix: str) -> frozenset[str]:
        return frozenset(each[len(prefix) :] for each in self._ended if each.startswith(prefix))

    def makes_task(self, name: str) -> bool:
        """Whether another file has a task maker of this name."""
        return f"{name}()" in self.ended_elsewhere

    def has_coroutine_function(self, name: str) -> bool:
        """Whether another file has a coroutine function of this name at its top."""
        return f"{_ASYNC}{name}" in self.ended_elsewhere

    def add(self, module: Module) -> None:
        self._modules[module.name] = module

    def module(self, name: str) -> Module | None:
        """The module of this full name, if it is one of the project's."""
        if name not in self._modules:
            # Set before it is parsed: two modules that import each other must not recurse.
            self._modules[name] = None
            path = self._paths.get(name)
            if path is not None:
                self._modules[name] = self._read(path, name)
        return self._modules[name]

    def _read(self, path: str, name: str) -> Module | None:
        try:
            content = read(path)
            return Module(parse(path, content), name, self.beside(content))
        except (SourceError, RecursionError):
            # Reported for the file itself, if it is checked. Here the class is simply not known.
            return None

    def find_class(self, name: str, depth: int = 0) -> Class | None:
        """The class of this full name, also through re-exports."""
        place, _, plain = name.rpartition(".")
        module = self.module(place) if place else None
        if module is None or depth > _REEXPORTS:
            return None
        if plain in module.classes:
            return module.classes[plain]
        origin = module.names.known(plain)
        return self.find_class(origin, depth + 1) if origin else None

    def find_function(self, name: str, depth: int = 0) -> Function | None:
        """The function of this full name, also through re-exports."""
        place, _, plain = name.rpartition(".")
        module = self.module(place) if place else None
        if module is None or depth > _REEXPORTS:
            return None
        found = module.find_function(plain)
        if found is not None:
            return found
        origin = module.names.known(plain)
        return self.find_function(origin, depth + 1) if origin else None
