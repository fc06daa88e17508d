"""Everything that is alive at one moment, compared with another moment.

What a kind cannot list is named in `not_checked`.
"""

from __future__ import annotations

import sys
from asyncio import AbstractEventLoop
from collections.abc import Collection, Hashable, Iterable

from handfast._asyncio_internals import missing_names
from handfast._census.kinds import KINDS
from handfast._census.live_object import LiveObject

CHECKS: tuple[str, ...] = tuple(KINDS)
ON_REQUEST: tuple[str, ...] = tuple(name for name, kind in KINDS.items() if kind.on_request)
DEFAULT: tuple[str, ...] = tuple(name for name in CHECKS if name not in ON_REQUEST)


class Snapshot:
    """What was alive at one moment.

    >>> import asyncio
    >>> async def main():
    ...     before = take(["tasks"])
    ...     task = asyncio.create_task(asyncio.sleep(60), name="poll")
    ...     new = take(["tasks"]).since(before)
    ...     task.cancel()
    ...     return [live.what for live in new]
    >>> asyncio.run(main())
    ["task 'poll' running sleep"]
    """

    __slots__ = ("not_checked", "objects")

    def __init__(self, objects: Iterable[LiveObject], not_checked: Iterable[str] = ()) -> None:
        self.objects = tuple(objects)
        self.not_checked = tuple(not_checked)

    @property
    def keys(self) -> frozenset[Hashable]:
        return frozenset(live.key for live in self.objects)

    def __add__(self, other: Snapshot) -> Snapshot:
        """Both, of different kinds."""
        return Snapshot(self.objects + other.objects, self.not_checked + other.not_checked)

    def since(self, before: Snapshot) -> list[LiveObject]:
        """The objects that are not in `before`."""
        known = before.keys
        return [live for live in self.objects if live.key not in known]


def take(checks: Collection[str] = DEFAULT, *, loop: AbstractEventLoop | None = None) -> Snapshot:
    """List what is alive now. With `loop`, only what belongs to that event loop."""
    kinds = [KINDS[check] for check in checks]
    objects = [live for kind in kinds for live in kind.list(loop)]
    not_checked = [what for kind in kinds for what in kind.not_checked(loop)]
    not_checked += [what for check in checks for what in _missing_in_this_python(check)]
    return Snapshot(objects, not_checked)


def _missing_in_this_python(check: str) -> Iterable[str]:
    """A new Python may lack a private name that a kind reads: then the kind lists less."""
    missing = missing_names(check)
    if missing:
        python = ".".join(map(str, sys.version_info[:2]))
        yield f"{check}, in part: Python {python} has no {', '.join(missing)}"
