"""A snapshot as JSON in parts: the encoder is in C, and holds up every thread while it runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import chain
from typing import Any

from handfast._watch.snapshot import Snapshot


def parts_of(snapshot: Snapshot, tasks: Iterable[str] = ()) -> Iterator[str]:
    """The text of `Snapshot.to_json`, a record at a time; `tasks` are further tasks, as text."""
    opening = "{"
    for each in fields(snapshot):
        yield f"{opening}{json.dumps(each.name)}:"
        opening = ","
        value = getattr(snapshot, each.name)
        if each.name == "tasks":
            yield from _list(chain(map(text_of, value), tasks))
        elif isinstance(value, tuple):
            yield from _list(map(text_of, value))
        else:
            yield text_of(value)
    yield "}"


def _list(items: Iterable[str]) -> Iterator[str]:
    yield "["
    for number, item in enumerate(items):
        yield f",{item}" if number else item
    yield "]"


def text_of(value: Any) -> str:
    """A record or a plain value as JSON."""
    return json.dumps(value, separators=(",", ":"), default=_record)


def _record(value: Any) -> dict[str, Any]:
    # Not asdict: it copies each value, and takes three times as long.
    return {each.name: getattr(value, each.name) for each in fields(value)}
