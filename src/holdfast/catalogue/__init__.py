"""The bug kinds: one code, one name and one page for each, shared by all detectors.

Data only: nothing here finds a bug, and nothing else of holdfast is imported. A code, once given
out, keeps its meaning for ever; the gaps in the numbers are room for kinds still to come.
"""

from __future__ import annotations

from holdfast.catalogue import (
    cancellation,
    errors,
    ownership,
    resources,
    slots,
    teardown,
    threads,
)
from holdfast.catalogue.bugkind import BugKind, UnknownCode

__all__ = ["FAMILIES", "KINDS", "BugKind", "UnknownCode", "kind"]

FAMILIES: dict[str, str] = {
    "HF1": ownership.FAMILY,
    "HF2": slots.FAMILY,
    "HF3": teardown.FAMILY,
    "HF4": threads.FAMILY,
    "HF5": cancellation.FAMILY,
    "HF6": errors.FAMILY,
    "HF7": resources.FAMILY,
}
"""The families in order, by the part of the code that they share."""

KINDS: tuple[BugKind, ...] = (
    *ownership.KINDS,
    *slots.KINDS,
    *teardown.KINDS,
    *threads.KINDS,
    *cancellation.KINDS,
    *errors.KINDS,
    *resources.KINDS,
)
"""Every kind, sorted by code."""

_BY_WORD: dict[str, BugKind] = {
    word: entry for entry in KINDS for word in (entry.code.casefold(), entry.name)
}


def kind(code: str) -> BugKind:
    """The kind of this code or name, in any case of letters; `UnknownCode` if there is none.

    >>> kind("hf201").name
    'slot-evicts-successor'
    >>> kind("task-dropped").code
    'HF101'
    """
    wanted = code.strip().casefold()
    try:
        return _BY_WORD[wanted]
    except KeyError:
        raise UnknownCode(code, _near(wanted)) from None


def _near(word: str) -> tuple[BugKind, ...]:
    """Up to three kinds whose code differs in one character, or whose name looks like this."""
    if word.startswith("hf"):
        return tuple(entry for entry in KINDS if _all_but_one(word, entry.code.casefold()))[:3]
    # Here and not above: only who mistypes pays for this import.
    from difflib import get_close_matches

    names = (entry.name for entry in KINDS)
    return tuple(_BY_WORD[name] for name in get_close_matches(word, names, n=3))


def _all_but_one(word: str, code: str) -> bool:
    return sum(map(str.__eq__, word, code)) >= len(code) - 1
