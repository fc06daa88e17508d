"""What every marker of ours has in common: keyword arguments, and a clear word for a wrong one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import pytest

__all__ = ["BadMarker", "keywords"]


class BadMarker(ValueError):
    """The marker says something that nobody can do."""


def keywords(mark: pytest.Mark, names: Sequence[str]) -> Mapping[str, Any]:
    """The arguments of the marker, all of which are among `names`."""
    if mark.args:
        raise BadMarker(f"takes keyword arguments only, not {mark.args[0]!r}")
    for name in mark.kwargs:
        if name not in names:
            raise BadMarker(f"{name!r} is no argument of it{_near(name, names)}")
    return mark.kwargs


def _near(name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f": did you mean {near[0]}?" if near else f", which takes {', '.join(names)}"
