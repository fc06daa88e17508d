"""Ignores: leaks that are accepted, each with a reason. An ignore that matches nothing is reported.

A pattern is compared with the code of a leak and the name of its kind, with what it is, and with
the lines where it was created or waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from handfast import catalogue
from handfast._leaks.leak import Leak
from handfast.catalogue import UnknownCode

_CODE = re.compile(r"HF\d+", re.IGNORECASE)
# A line of a stack, also with what happened there: "raised at a.py:3 in poll".
_STACK_LINE = re.compile(r"(?:.*? at )?(.+?):(\d+) in (.+)")


@dataclass(frozen=True, slots=True)
class Ignore:
    """Accepted leaks, and the reason.

    The pattern is one of these; `*`, `?` and `[...]` in it work as in file names:

    - a code or the name of a kind: `HF102`, `task-left-over`, `HF7*`
    - a part of what it is: `task 'poll'`
    - a file, or one line of it: `bot.py`, `tests/bot.py`, `bot.py:12`
    - a function: `Bot._poll`

    >>> Ignore("HF102", reason="the pool of the driver has no close (issue 41)").pattern
    'HF102'
    >>> Ignore("HF102", reason="")
    Traceback (most recent call last):
    ValueError: ignoring 'HF102' needs a reason: say why the leak is accepted
    """

    pattern: str
    reason: str

    def __post_init__(self) -> None:
        if _is_blank(self.pattern):
            raise ValueError(
                f"{self.pattern!r} is nothing to ignore: name a code, a file, a function or a text"
            )
        if _is_blank(self.reason):
            raise ValueError(
                f"ignoring {self.pattern!r} needs a reason: say why the leak is accepted"
            )
        if _CODE.fullmatch(self.pattern):
            _check_code(self.pattern)

    def matches(self, leak: Leak) -> bool:
        """Whether the pattern fits a leak."""
        if _CODE.fullmatch(self.pattern):
            return self.pattern.upper() == leak.code
        return (
            fnmatchcase(leak.code, self.pattern)
            or fnmatchcase(leak.kind.name, self.pattern)
            or _is_in(self.pattern, leak.what)
            or any(_is_at(self.pattern, *place) for place in _places(leak))
        )

    def __str__(self) -> str:
        return f"{self.pattern}: {self.reason}"


class Ignores:
    """Several ignores, and which of them have matched."""

    def __init__(self, ignores: Iterable[Ignore] = ()) -> None:
        self.all = tuple(ignores)
        self._used: set[int] = set()

    def filter(self, leaks: Iterable[Leak]) -> list[Leak]:
        """The leaks that no ignore matches."""
        return [leak for leak in leaks if not self._covers(leak)]

    @property
    def unused(self) -> tuple[Ignore, ...]:
        """The ignores that have matched nothing so far."""
        return tuple(ignore for at, ignore in enumerate(self.all) if at not in self._used)

    def _covers(self, leak: Leak) -> bool:
        # All are tried: one that comes second is not unused because another came first.
        matching = {at for at, ignore in enumerate(self.all) if ignore.matches(leak)}
        self._used |= matching
        return bool(matching)


def _is_blank(word: object) -> bool:
    return not isinstance(word, str) or not word.strip()


def _check_code(pattern: str) -> None:
    try:
        catalogue.kind(pattern)
    except UnknownCode as error:
        raise ValueError(str(error)) from None


def _places(leak: Leak) -> Iterator[tuple[str, int, str]]:
    """File, line and function of each line in the report of a leak."""
    for origin in (leak.created_at, leak.created_via):
        if origin is not None:
            yield origin.filename, origin.lineno, origin.function
    for line in leak.waiting_at:
        if found := _STACK_LINE.fullmatch(line):
            yield found[1], int(found[2]), found[3]


def _is_in(pattern: str, text: str) -> bool:
    # Also literally: "test_it[one]" is more often a name than a set of letters.
    return pattern in text or fnmatchcase(text, f"*{pattern}*")


def _is_at(pattern: str, filename: str, lineno: int, function: str) -> bool:
    file, colon, line = pattern.rpartition(":")
    if colon and line.isdigit():
        return int(line) == lineno and _is_file(file, filename)
    return _is_file(pattern, filename) or _is_function(pattern, function)


def _is_file(pattern: str, filename: str) -> bool:
    path = filename.replace("\\", "/")
    if "/" not in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern)
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}")


def _is_function(pattern: str, qualname: str) -> bool:
    """Whether it is the name, or the end of it: `Bot._poll` in `test_it.<locals>.Bot._poll`."""
    parts = qualname.split(".")
    return any(fnmatchcase(".".join(parts[at:]), pattern) for at in range(len(parts)))
