"""Attributes of classes and modules that are replaced for the length of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Patch = tuple[Any, str, Any]
"""The class or module, the name of the attribute, and its replacement."""


@contextmanager
def patched(patches: Iterable[Patch]) -> Iterator[None]:
    """Replace the attributes, and restore them at the end."""
    applied = [(place, name, vars(place)[name], new) for place, name, new in patches]
    try:
        for place, name, _, new in applied:
            setattr(place, name, new)
        yield
    finally:
        for place, name, old, _ in applied:
            setattr(place, name, old)
