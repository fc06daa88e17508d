"""Keyword arguments of a marker; an unknown one is an error with a suggestion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from handfast._did_you_mean import suggest_or_list


class BadMarker(ValueError):
    """The arguments of a marker are wrong."""


def keywords(mark: pytest.Mark, names: Sequence[str]) -> Mapping[str, Any]:
    """Return the arguments of the marker. Raises `BadMarker` if one is not in `names`."""
    if mark.args:
        raise BadMarker(f"takes keyword arguments only, not {mark.args[0]!r}")
    for name in mark.kwargs:
        if name not in names:
            raise BadMarker(f"{name!r} is not an argument{suggest_or_list(name, names)}")
    return mark.kwargs
