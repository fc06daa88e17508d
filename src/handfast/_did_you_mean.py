"""Suggestions for a misspelled word."""

from __future__ import annotations

from collections.abc import Iterable


def suggest(word: str, words: Iterable[str], most: int = 1) -> list[str]:
    """Return up to `most` of `words` that are spelled like `word`, the most similar first.

    >>> suggest("taks", ["tasks", "timers"])
    ['tasks']
    """
    # Imported here because only an error message needs it.
    from difflib import get_close_matches

    return get_close_matches(word, list(words), n=most)


def suggest_or_list(word: str, words: Iterable[str]) -> str:
    """Return the end of a sentence that rejects `word`: the most similar one, or all `words`.

    >>> suggest_or_list("taks", ["tasks", "timers"])
    ': did you mean tasks?'
    >>> suggest_or_list("zzz", ["tasks", "timers"])
    '; use one of tasks, timers'
    """
    known = list(words)
    near = suggest(word, known)
    return f": did you mean {near[0]}?" if near else f"; use one of {', '.join(known)}"
