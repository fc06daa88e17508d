"""Numbers, ages, names and lines of a snapshot in a few characters of a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from unicodedata import combining, east_asian_width

from handfast._watch.snapshot import CreationPlace

_UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, ""), (60, "m", 1, ""))
# These names say nothing without their folder.
_BARE = ("__init__.py", "__main__.py", "app.py", "main.py")


def printable(text: str, most: int = 200) -> str:
    """Return a text without characters that control a terminal, cut to `most` characters.

    >>> printable("a\\x1b[2Jb")
    'a?[2Jb'
    """
    if len(text) > most:
        text = text[: most - 1] + "…"
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else "?" for each in text)


def age(seconds: float | None) -> str:
    """Return an age: "7.5s", "6h12", "3d04h"; "-" if it is not known.

    >>> [age(each) for each in (None, 0.25, 42, 3661, 100_000)]
    ['-', '0.2s', '42s', '1h01', '1d03h']
    """
    if seconds is None or not isfinite(seconds):
        return "-"
    for unit, name, part, suffix in _UNITS:
        if seconds >= unit:
            whole, rest = divmod(int(seconds), unit)
            return f"{whole}{name}{rest // part:02}{suffix}"
    return f"{seconds:.1f}s" if seconds < 10 else f"{int(seconds)}s"


def milliseconds(value: float | None) -> str:
    """Return a time of a loop: "0.4 ms", "2.3 s"; "-" if it is not known.

    >>> milliseconds(0.43), milliseconds(90.4), milliseconds(2300.0)
    ('0.4 ms', '90 ms', '2.3 s')
    """
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value / 1000:.1f} s"
    return f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"


def signed(value: float) -> str:
    """Return a rate with its sign: "+3.1", "+1,204"."""
    return f"{value:+,.1f}" if abs(value) < 100 else f"{value:+,.0f}"


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun: "1 task", "2,000 tasks"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- places --------------------------------------------------------------------------------------


def place_names(places: Iterable[CreationPlace]) -> dict[int, str]:
    """Return a short name for each place, by its id: "bot.py:88 poll".

    The folder is in it only where the file's name alone would say too little.
    """
    listed = list(places)
    files: dict[str, set[str]] = {}
    for each in listed:
        files.setdefault(_tail(each.file, 1), set()).add(each.file)
    named = {}
    for each in listed:
        tail = _tail(each.file, 1)
        parts = 2 if tail in _BARE or len(files[tail]) > 1 else 1
        function = each.function.replace("<locals>.", "")
        named[each.id] = printable(f"{_tail(each.file, parts)}:{each.line} {function}")
    return named


def _tail(file: str, parts: int) -> str:
    return "/".join(file.replace("\\", "/").split("/")[-parts:])


def short_line(text: str) -> str:
    """Return a line, or what is awaited with its line, without the folders of the file.

    >>> short_line("Queue.get ← /srv/app/bot.py:41 in fetch")
    'Queue.get ← bot.py:41 in fetch'
    """
    words, arrow, line = printable(text).rpartition(" ← ")
    file, named, function = line.partition(" in ")
    return f"{words}{arrow}{_tail(file, 1)}{named}{function}"


# --- columns -------------------------------------------------------------------------------------


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(each) for each in text)


def _columns(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Return a text in exactly `width` columns: cut with "…", or filled with spaces."""
    if width_of(text) > width:
        text = _cut(text, width)
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def _cut(text: str, width: int) -> str:
    if width < 1:
        return ""
    kept, used = [], 0
    for each in text:
        used += _columns(each)
        if used > width - 1:
            break
        kept.append(each)
    return "".join(kept) + "…"
