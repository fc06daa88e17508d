"""Which codes are selected: the longest prefix of a code in `select` or `ignore` decides.

If both are equally long, the code is ignored. A pedantic rule runs with `pedantic`, or if `select`
has its full code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from handfast.catalogue import KINDS, UnknownCode, kind

BROKEN = "HF000"
UNUSED_NOQA = "HF001"

CHECKER_CODES = {
    BROKEN: ("file-not-checked", "A file could not be read or parsed."),
    UNUSED_NOQA: ("noqa-unused", "A `noqa` comment suppresses nothing; `--fix` removes it."),
}
"""The codes that are no kinds of bugs, with their names and summaries."""


class UnknownSelector(ValueError):
    """No kind of bug has this code, prefix or name."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected codes.

    >>> wanted = Selection(select=("HF2", "HF301"), ignore=("HF203",))
    >>> [wanted.has(code) for code in ("HF201", "HF203", "HF301", "HF302")]
    [True, False, True, False]
    """

    select: tuple[str, ...] = ("HF",)
    ignore: tuple[str, ...] = ()
    pedantic: bool = False
    thread_callbacks: tuple[str, ...] = ()
    """Functions that call back on a thread, in addition to the known ones."""
    relaxed: bool = False
    """Whether every finding of the file has medium confidence."""

    def has(self, code: str, *, pedantic: bool = False) -> bool:
        """Whether findings of this code are selected."""
        if pedantic and not self.pedantic and code not in self.select:
            return False
        return _longest(self.select, code) > _longest(self.ignore, code)


def _longest(prefixes: Iterable[str], code: str) -> int:
    return max((len(each) for each in prefixes if code.startswith(each)), default=0)


@lru_cache(maxsize=256)
def codes_of(word: str) -> str:
    """Return the code or prefix of codes for a code, prefix or name.

    >>> codes_of("hf2"), codes_of("task-dropped")
    ('HF2', 'HF101')
    >>> codes_of("HF22")
    Traceback (most recent call last):
    handfast._check.settings.selection.UnknownSelector: no code begins with 'HF22': did you mean ...
    """
    code = word.strip().upper()
    codes = (*CHECKER_CODES, *(kind.code for kind in KINDS))
    if code.startswith("HF") and any(each.startswith(code) for each in codes):
        return code
    try:
        return kind(word).code
    except UnknownCode as error:
        near = list(error.near) or [
            each for each in KINDS if len(code) > 2 and each.code.startswith(code[:3])
        ]
        hint = " or ".join(f"{each.code} ({each.name})" for each in near[:2])
        tail = f": did you mean {hint}?" if hint else "; `handfast explain` lists all codes"
        raise UnknownSelector(f"no code begins with {word.strip()!r}{tail}") from None
