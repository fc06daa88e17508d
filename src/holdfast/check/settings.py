"""What is asked for: `[tool.holdfast.check]` of the nearest pyproject.toml, file by file.

What the command line says wins over all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from holdfast.check.gitignore import Patterns
from holdfast.check.selection import Selection, UnknownSelector, codes_of

__all__ = ["BadSettings", "Finder", "Overrides", "Settings"]

_KEYS = ("select", "ignore", "pedantic", "per-file-ignores", "exclude", "thread-callbacks")
# What stands before a method or function: a package, a package and anything of it, or anything.
_CALLBACK = re.compile(r"(?:\*|[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:\.\*)?)\.[^\W\d]\w*")


class BadSettings(ValueError):
    """A settings file, or the command line, asks for something that there is not."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says; None: nothing."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    pedantic: bool | None = None

    @classmethod
    def of(
        cls,
        select: Iterable[str] | None = None,
        ignore: Iterable[str] | None = None,
        pedantic: bool | None = None,
    ) -> Overrides:
        """The same, with every code looked up; `BadSettings` if one is unknown."""
        return cls(
            None if select is None else _codes(select, "--select"),
            None if ignore is None else _codes(ignore, "--ignore"),
            pedantic,
        )


@dataclass(frozen=True)
class Settings:
    """What one settings file asks for. `root` is the folder that its paths are seen from."""

    root: str
    selection: Selection = field(default_factory=Selection)
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()

    def excludes(self, path: str, is_folder: bool) -> bool:
        """Whether the walk goes past this."""
        return bool(self._excluded) and bool(
            self._excluded.judge(self._relative(path), is_folder=is_folder)
        )

    def selection_for(self, path: str) -> Selection:
        """What is wanted of one file."""
        if not self.per_file_ignores:
            return self.selection
        relative = self._relative(os.path.abspath(path))
        more = [
            code for patterns, codes in self._ignores if patterns.covers(relative) for code in codes
        ]
        if not more:
            return self.selection
        # Spelled out, because here the file is more specific than any prefix that is selected.
        wanted = self.selection
        select, ignore = _without(wanted.select, more), (*wanted.ignore, *more)
        return replace(wanted, select=select, ignore=ignore)

    @cached_property
    def _excluded(self) -> Patterns:
        return Patterns(self.exclude)

    @cached_property
    def _ignores(self) -> list[tuple[Patterns, tuple[str, ...]]]:
        return [(Patterns([glob]), codes) for glob, codes in self.per_file_ignores]

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.root).replace(os.sep, "/")


def _without(select: tuple[str, ...], ignored: Iterable[str]) -> tuple[str, ...]:
    gone = tuple(ignored)
    return tuple(each for each in select if not each.startswith(gone))


class Finder:
    """Finds the settings of a file; each pyproject.toml is read once."""

    def __init__(self, overrides: Overrides | None = None) -> None:
        overrides = overrides or Overrides()
        self._overrides = overrides
        self._known: dict[str, Settings | None] = {}
        self._default = _overridden(Settings(os.getcwd()), overrides)

    def of(self, path: str) -> Settings:
        """The settings for a file or a folder."""
        return self.of_folder(os.path.dirname(os.path.abspath(path)))

    def of_folder(self, folder: str) -> Settings:
        return self._nearest(folder) or self._default

    def excluded(self, path: str, is_folder: bool) -> bool:
        return self.of_folder(os.path.dirname(path)).excludes(path, is_folder)

    def _nearest(self, folder: str) -> Settings | None:
        if folder not in self._known:
            own = _read(os.path.join(folder, "pyproject.toml"))
            parent = os.path.dirname(folder)
            if own is not None:
                self._known[folder] = _overridden(own, self._overrides)
            else:
                self._known[folder] = self._nearest(parent) if parent != folder else None
        return self._known[folder]


def _overridden(settings: Settings, overrides: Overrides) -> Settings:
    said = settings.selection
    selection = replace(
        said,
        select=said.select if overrides.select is None else overrides.select,
        ignore=said.ignore if overrides.ignore is None else overrides.ignore,
        pedantic=said.pedantic if overrides.pedantic is None else overrides.pedantic,
    )
    return replace(settings, selection=selection)


# --- reading one ---------------------------------------------------------------------------------


def _read(path: str) -> Settings | None:
    """The settings in a pyproject.toml; None if it is not there, or has none of ours."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return None
    if b"holdfast" not in content:
        return None
    import tomllib  # only who has settings pays for it

    try:
        data = tomllib.loads(content.decode("utf-8"))
    except ValueError as error:  # broken TOML, or no UTF-8
        raise BadSettings(f"{path} cannot be read: {error}") from None
    tool = data.get("tool", {})
    ours = tool.get("holdfast") if isinstance(tool, Mapping) else None
    table = ours.get("check") if isinstance(ours, Mapping) else None
    return None if table is None else _settings(table, path)


def _settings(table: Any, path: str) -> Settings:
    where = f"[tool.holdfast.check] in {path}"
    if not isinstance(table, Mapping):
        raise BadSettings(f"{where} is no table")
    for key in table:
        if key not in _KEYS:
            raise BadSettings(f"{where}: there is no setting {key!r}{_near(key)}")
    pedantic = table.get("pedantic", False)
    if not isinstance(pedantic, bool):
        raise BadSettings(f"{where}: pedantic is true or false, not {pedantic!r}")
    select = _words(table, "select", where) if "select" in table else ["HF"]
    return Settings(
        os.path.dirname(path),
        Selection(
            _codes(select, f"{where}: select"),
            _codes(_words(table, "ignore", where), f"{where}: ignore"),
            pedantic,
            _thread_callbacks(table, where),
        ),
        tuple(_per_file(table, where)),
        tuple(_words(table, "exclude", where)),
    )


def _per_file(table: Mapping[str, Any], where: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    said = table.get("per-file-ignores", {})
    if not isinstance(said, Mapping):
        raise BadSettings(f'{where}: per-file-ignores is a table: {{"tests/*" = ["HF101"]}}')
    for glob in said:
        yield glob, _codes(_words(said, glob, where), f"{where}: per-file-ignores")


def _thread_callbacks(table: Mapping[str, Any], where: str) -> tuple[str, ...]:
    words = _words(table, "thread-callbacks", where)
    for word in words:
        if not _CALLBACK.fullmatch(word):
            raise BadSettings(
                f"{where}: thread-callbacks: {word!r} is none of 'package.function', "
                "'package.*.method' and '*.method'"
            )
    return tuple(words)


def _words(table: Mapping[str, Any], key: str, where: str) -> list[str]:
    words = table.get(key, [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise BadSettings(f"{where}: {key} is a list of strings, not {words!r}")
    return words


def _codes(words: Iterable[str], where: str) -> tuple[str, ...]:
    try:
        return tuple(codes_of(word) for word in words)
    except UnknownSelector as error:
        raise BadSettings(f"{where}: {error}") from None


def _near(key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key.replace("_", "-"), _KEYS, n=1)
    return f": did you mean {near[0]!r}?" if near else f"; there are {', '.join(_KEYS)}"
