"""Which codes are wanted: the longest prefix that fits a code decides, and on a tie it is ignored.

A pedantic rule runs if everything pedantic is asked for, or its whole code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from holdfast.catalogue import KINDS, UnknownCode, kind

__all__ = ["BROKEN", "UNUSED_NOQA", "Selection", "UnknownSelector", "codes_of"]

BROKEN = "HF000"
"""A file that cannot be read or parsed."""
UNUSED_NOQA = "HF001"
"""A `noqa` comment that takes nothing back."""


class UnknownSelector(ValueError):
    """No kind has this code, and none begins so."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is asked for.

    >>> wanted = Selection(select=("HF2", "HF301"), ignore=("HF203",))
    >>> [wanted.has(code) for code in ("HF201", "HF203", "HF301", "HF302")]
    [True, False, True, False]
    """

    select: tuple[str, ...] = ("HF",)
    ignore: tuple[str, ...] = ()
    pedantic: bool = False
    thread_callbacks: tuple[str, ...] = ()
    """What calls back on a thread, beside what is known."""

    def has(self, code: str, *, pedantic: bool = False) -> bool:
        """Whether findings of this code are wanted."""
        if pedantic and not self.pedantic and code not in self.select:
            return False
        return _longest(self.select, code) > _longest(self.ignore, code)


def _longest(prefixes: Iterable[str], code: str) -> int:
    return max((len(each) for each in prefixes if code.startswith(each)), default=0)


@lru_cache(maxsize=256)
def codes_of(word: str) -> str:
    """The code, or the beginning of codes, that a word stands for; a name will do as well.

    >>> codes_of("hf2"), codes_of("task-dropped")
    ('HF2', 'HF101')
    >>> codes_of("HF22")
    Traceback (most recent call last):
    holdfast.check.selection.UnknownSelector: no code begins with 'HF22': did you mean ...
    """
    code = word.strip().upper()
    own = (BROKEN, UNUSED_NOQA)
    if code.startswith("HF") and any(
        each.startswith(code) for each in (*own, *(kind.code for kind in KINDS))
    ):
        return code
    try:
        return kind(word).code
    except UnknownCode as error:
        near = list(error.near) or [
            each for each in KINDS if len(code) > 2 and each.code.startswith(code[:3])
        ]
        hint = " or ".join(f"{each.code} ({each.name})" for each in near[:2])
        tail = f": did you mean {hint}?" if hint else "; `holdfast explain` lists all codes"
        raise UnknownSelector(f"no code begins with {word.strip()!r}{tail}") from None
