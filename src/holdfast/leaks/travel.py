"""A finding on its way from one process to another: as plain data, and back.

The workers of xdist find the leaks, and the process that started them tells of them. What
arrives reads the same, word for word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from holdfast.leaks.finding import Leak
from holdfast.leaks.place import Place
from holdfast.origin import Origin

__all__ = ["from_data", "to_data"]


def to_data(leak: Leak) -> dict[str, Any]:
    """The finding as JSON can hold it."""
    return {
        "code": leak.code,
        "what": leak.what,
        "check": leak.check,
        "owner": leak.owner,
        "born": _line(leak.born),
        "near": _line(leak.near),
        "stands": list(leak.stands),
    }


def from_data(data: Mapping[str, Any]) -> Leak:
    """The finding that was made into `data`."""
    return Leak(
        data["code"],
        data["what"],
        check=data["check"],
        owner=data["owner"],
        born=_place(data["born"]),
        near=_place(data["near"]),
        stands=tuple(data["stands"]),
    )


def _line(origin: Origin | Place | None) -> dict[str, Any] | None:
    return None if origin is None else asdict(Place.of(origin))


def _place(data: Mapping[str, Any] | None) -> Place | None:
    return None if data is None else Place(**data)
