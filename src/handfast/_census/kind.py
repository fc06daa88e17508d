"""A kind of live object: how to list it, and what to patch so that creations are recorded."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from handfast._census.live_object import LiveObject
from handfast._census.patch import Patch


def _no_patches() -> Iterable[Patch]:
    return ()


def _all_is_checked(loop: AbstractEventLoop | None) -> Iterable[str]:
    return ()


def _nothing_to_clear() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object. Each file in `kinds/` defines one, as `KIND`."""

    name: str
    """As users write it: `check=["tasks"]`."""
    codes: tuple[str, ...]
    """The catalogue codes of its leaks, the first for sorting."""
    list: Callable[[AbstractEventLoop | None], Iterable[LiveObject]]
    """All objects of the kind, or those of one event loop."""
    patches: Callable[[], Iterable[Patch]] = _no_patches
    """What to patch while creations are recorded."""
    not_checked: Callable[[AbstractEventLoop | None], Iterable[str]] = _all_is_checked
    """What cannot be listed here, for the report."""
    clear: Callable[[], None] = _nothing_to_clear
    """Drop what was recorded, at the end of the recording."""
    per_loop: bool = False
    """Its objects belong to one event loop and cannot outlive it, or not for long."""
    on_request: bool = False
    """Listed only if a user asks for it by name."""
    slow: bool = False
    """Listing walks through the whole heap, so it is done once and not repeatedly."""
