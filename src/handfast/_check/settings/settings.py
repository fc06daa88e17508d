"""The settings of a file: `[tool.handfast.check]` in the nearest pyproject.toml.

Options of the command line override them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from handfast._check.settings.path_patterns import PathPatterns
from handfast._check.settings.selection import Selection, UnknownSelector, codes_of
from handfast._check.settings.settings_file import (
    BadSettings,
    SettingsTable,
    read_option,
    read_table,
)
from handfast._did_you_mean import suggest

_KEYS = (
    *("select", "extend-select", "ignore", "pedantic"),
    *("per-file-ignores", "relaxed", "exclude", "thread-callbacks"),
)
# Before the function or method: a package, a package and anything in it, or anything.
_CALLBACK = re.compile(r"(?:\*|[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:\.\*)?)\.[^\W\d]\w*")


@dataclass(frozen=True)
class Settings:
    """The settings of one file. `root` is the folder that its patterns are relative to."""

    root: str
    selection: Selection = field(default_factory=Selection)
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    path: str = ""
    """The file that they are from; empty for the defaults."""
    ignores_root: str = ""
    """The folder of `per_file_ignores`, if it is another one."""
    relaxed: tuple[str, ...] = ()
    """Patterns of files in which no finding has a high confidence, for example tests."""

    def excludes(self, path: str, is_folder: bool) -> bool:
        """Whether a file or folder is left out."""
        if not self.exclude:
            return False
        return self._excluded.match(_relative(path, self.root), is_folder=is_folder)

    def selection_for(self, path: str) -> Selection:
        """Return the selection of codes for one file."""
        wanted = self.selection
        if self.relaxed and self._relaxed.covers(_relative(os.path.abspath(path), self.root)):
            wanted = replace(wanted, relaxed=True)
        if not self.per_file_ignores:
            return wanted
        relative = _relative(os.path.abspath(path), self.ignores_root or self.root)
        more = [
            code for patterns, codes in self._ignores if patterns.covers(relative) for code in codes
        ]
        if not more:
            return wanted
        # A code that is ignored for this file must win over a longer one in `select`.
        select, ignore = _without(wanted.select, more), (*wanted.ignore, *more)
        return replace(wanted, select=select, ignore=ignore)

    @cached_property
    def _excluded(self) -> PathPatterns:
        return PathPatterns(self.exclude)

    @cached_property
    def _relaxed(self) -> PathPatterns:
        return PathPatterns(self.relaxed)

    @cached_property
    def _ignores(self) -> list[tuple[PathPatterns, tuple[str, ...]]]:
        return [(PathPatterns([glob]), codes) for glob, codes in self.per_file_ignores]


def _relative(path: str, root: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")


def _without(select: tuple[str, ...], ignored: Iterable[str]) -> tuple[str, ...]:
    gone = tuple(ignored)
    return tuple(each for each in select if not each.startswith(gone))


class SettingsFinder:
    """Finds the settings of a file; reads each pyproject.toml once."""

    def __init__(
        self,
        select: Iterable[str] | None = None,
        ignore: Iterable[str] | None = None,
        pedantic: bool | None = None,
        *,
        extend_select: Iterable[str] = (),
        per_file_ignores: Mapping[str, Iterable[str]] | None = None,
        exclude: Iterable[str] | None = None,
        config: Iterable[str] = (),
    ) -> None:
        """The arguments are those of the command line, and override the files."""
        here = os.getcwd()
        overrides = {
            "select": None if select is None else _codes(select, "--select"),
            "ignore": None if ignore is None else _codes(ignore, "--ignore"),
            "pedantic": pedantic,
        }
        self._overrides = {key: value for key, value in overrides.items() if value is not None}
        self._more = _codes(extend_select, "--extend-select")
        # Patterns of the command line are relative to the current folder, as those of ruff.
        self._changes: dict[str, Any] = {}
        if per_file_ignores is not None:
            ignores = per_file_ignores.items()
            named = tuple((glob, _codes(codes, "--per-file-ignores")) for glob, codes in ignores)
            self._changes = {"per_file_ignores": named, "ignores_root": here}
        self._excludes = None if exclude is None else Settings(here, exclude=tuple(exclude))
        self._only: SettingsTable | None = None
        self._inline: dict[str, Any] = {}
        for each in config:
            table, is_file = read_option(each)
            if is_file:
                self._only = table
            else:
                _settings(table, here)  # for its errors
                self._inline |= table.values
        self._known: dict[str, Settings | None] = {}
        self._default = self._made(self._only or SettingsTable(), here)

    def of(self, path: str) -> Settings:
        """Return the settings of a file."""
        return self.of_folder(os.path.dirname(os.path.abspath(path)))

    def of_folder(self, folder: str) -> Settings:
        return self._default if self._only else self._nearest(folder) or self._default

    def excluded(self, path: str, is_folder: bool) -> bool:
        settings = self._excludes or self.of_folder(os.path.dirname(path))
        return settings.excludes(path, is_folder)

    def _nearest(self, folder: str) -> Settings | None:
        if folder not in self._known:
            own = read_table(os.path.join(folder, "pyproject.toml"))
            parent = os.path.dirname(folder)
            if own is not None:
                self._known[folder] = self._made(own, folder)
            else:
                self._known[folder] = self._nearest(parent) if parent != folder else None
        return self._known[folder]

    def _made(self, table: SettingsTable, root: str) -> Settings:
        """Return the settings of a table, with those of the command line."""
        settings = _settings(replace(table, values={**table.values, **self._inline}), root)
        overrides: dict[str, Any] = self._overrides
        selection = replace(settings.selection, **overrides)
        selection = replace(selection, select=(*selection.select, *self._more))
        return replace(settings, selection=selection, **self._changes)


# --- one table -------------------------------------------------------------------------------------


def _settings(table: SettingsTable, root: str) -> Settings:
    values = table.values
    for key in values:
        if key not in _KEYS:
            raise table.error(f"there is no setting {key!r}{_near(key)}", key)
    pedantic = values.get("pedantic", False)
    if not isinstance(pedantic, bool):
        raise table.error(f"pedantic is true or false, not {pedantic!r}", "pedantic")
    select = _codes_in(table, "select") if "select" in values else ("HF",)
    return Settings(
        root,
        Selection(
            (*select, *_codes_in(table, "extend-select")),
            _codes_in(table, "ignore"),
            pedantic,
            _thread_callbacks(table),
        ),
        tuple(_per_file(table)),
        tuple(_words(table, "exclude")),
        table.path,
        relaxed=tuple(_words(table, "relaxed")),
    )


def _per_file(table: SettingsTable) -> Iterable[tuple[str, tuple[str, ...]]]:
    key = "per-file-ignores"
    ignores = table.values.get(key, {})
    if not isinstance(ignores, Mapping):
        raise table.error(f'{key} is a table: {{"tests/*" = ["HF101"]}}', key)
    for glob in ignores:
        yield glob, _codes_in(replace(table, values=ignores), glob, f"{key}: {glob}")


def _thread_callbacks(table: SettingsTable) -> tuple[str, ...]:
    key = "thread-callbacks"
    words = _words(table, key)
    for word in words:
        if not _CALLBACK.fullmatch(word):
            raise table.error(
                f"{key}: {word!r} is none of 'package.function', 'package.*.method' and '*.method'",
                key,
                word,
            )
    return tuple(words)


def _words(table: SettingsTable, key: str) -> list[str]:
    words = table.values.get(key, [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise table.error(f"{key} is a list of strings, not {words!r}", key)
    return words


def _codes_in(table: SettingsTable, key: str, name: str = "") -> tuple[str, ...]:
    words = _words(table, key)
    for word in words:
        try:
            codes_of(word)
        except UnknownSelector as error:
            raise table.error(f"{name or key}: {error}", key, word) from None
    return tuple(map(codes_of, words))


def _codes(words: Iterable[str], option: str) -> tuple[str, ...]:
    try:
        return tuple(map(codes_of, words))
    except UnknownSelector as error:
        raise BadSettings(f"{option}: {error}") from None


def _near(key: str) -> str:
    near = suggest(key.replace("_", "-"), _KEYS)
    return f": did you mean {near[0]!r}?" if near else f"; there are {', '.join(_KEYS)}"
