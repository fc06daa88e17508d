"""The code and the docs use the words of asyncio's documentation, and the package has one name.

Each word of `INSTEAD` was once used here in a meaning of its own. `WORDS` finds them as whole words,
in any case, also as a part of a name (`test_room`), in everything that a user or a contributor reads.
The changelog keeps the old words, because it says what was renamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "handfast"
INSTEAD = {
    "room, rooms": "tool, module, package",
    "house, houses": "project, package",
    "neighbour, neighbours": "library",
    "born, birth, births, birthplace": "created, creation, created at",
    "mend, mends, mended, mending": "fix, fixed, fixing",
    "excuse, excuses, excused": "suppress, ignore",
    "deed, deeds": "operation",
    "asked": "requested, called; or name what is called",
    "told": "reported, notified",
    "whoever": "the caller; or name the code",
    "sift, sifts, sifted": "filter",
    "struck": "cancelled",
    "tidings": "report",
    "heir, heirs": "receiver",
    "furniture": "file, module",
    "kelp": "the problem that is solved",
    "onlooker, onlookers": "waiter",
    "twin, twins": "simulation",
    "casebook": "examples",
    "stands at": "is waiting at",
    "nobody holds": "no reference is kept",
    "left behind": "leaked",
    "way down": "shutdown",
    "who is told": "name the receiver of the report",
}
USE = {word: instead for words, instead in INSTEAD.items() for word in words.split(", ")}
# A phrase may go over the end of a line. `_` ends a word here, other than for `\b`.
WORDS = re.compile(
    r"(?<![^\W_])("
    + "|".join(word.replace(" ", r"[\s_]+") for word in sorted(USE, key=len, reverse=True))
    + r")(?![^\W_])",
    re.IGNORECASE,
)
TEXT = {
    ".py",
    ".md",
    ".feature",
    ".robot",
    ".toml",
    ".yml",
    ".yaml",
    ".json",
    ".html",
    ".css",
    ".js",
    ".svg",
    ".txt",
}
ROOT_FILES = {".gitignore", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "LICENSE"}
AREAS = [
    ".github",
    "AGENTS.md",
    "README.md",
    "CONTRIBUTING.md",
    "action.yml",
    "mkdocs.yml",
    "noxfile.py",
    "pyproject.toml",
    "benchmarks",
    "wild",
    *sorted(
        path.relative_to(ROOT).as_posix()
        for folder in (PACKAGE, *(ROOT / each for each in ("docs", "examples", "tests")))
        for path in folder.iterdir()
        if path.name != "__pycache__" and (path.is_dir() or path.suffix in TEXT)
    ),
]


def files(area: Path) -> Iterator[Path]:
    """The text files of a folder; of a file, the file itself."""
    for path in [area] if area.is_file() else sorted(area.rglob("*")):
        if path.is_file() and path.suffix in TEXT and path != Path(__file__):
            yield path


def found_in(text: str, name: str) -> Iterator[str]:
    """A line for each banned word of a text: place, word, and what to write instead."""
    for match in WORDS.finditer(text):
        word = " ".join(match[0].lower().replace("_", " ").split())
        yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {word!r}: use {USE[word]}"


@pytest.mark.parametrize("area", AREAS)
def test_only_plain_words_are_used(area: str) -> None:
    found = [
        line
        for path in files(ROOT / area)
        for name in [path.relative_to(ROOT).as_posix()]
        for line in found_in(f"{path.read_text(encoding='utf-8')}\n{name}", name)
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("word", USE)
def test_a_banned_word_is_found_with_its_line(word: str) -> None:
    text = f"one\na {word.capitalize()}, two\nx{word}y\ndef test_{word.replace(' ', '_')}_is"
    assert list(found_in(text, "a.md")) == [
        f"a.md:{line}: {word!r}: use {USE[word]}" for line in (2, 4)
    ]


def test_a_phrase_is_found_across_the_end_of_a_line() -> None:
    assert list(found_in("the way\n    down", "a.md")) == ["a.md:1: 'way down': use shutdown"]


def test_the_old_name_of_the_package_is_only_in_the_changelog() -> None:
    old = b"hold" + b"fast"
    folders = ("src", "docs", "examples", "tests", "benchmarks", "wild", ".ci")
    paths = [
        *(path for each in folders for path in (ROOT / each).rglob("*")),
        *(path for path in ROOT.iterdir() if path.suffix in TEXT or path.name in ROOT_FILES),
    ]
    assert [
        name
        for path in paths
        if path.is_file() and "__pycache__" not in path.parts and path.name != "CHANGELOG.md"
        if old in (name := path.relative_to(ROOT).as_posix()).lower().encode()
        or old in path.read_bytes().lower()
    ] == []
