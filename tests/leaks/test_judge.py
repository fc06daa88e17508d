"""What is a leak: decided from the fields of live objects alone."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from handfast._census import Creation, LiveObject, Snapshot
from handfast._leaks import judge

CODE = (lambda: None).__code__


def live(
    key: Hashable, owner: object = None, *, recorded: bool = True, **fields: Any
) -> LiveObject:
    creation = Creation(CODE, 0, CODE, 0, owner) if recorded else None
    options: dict[str, Any] = {"check": "tasks", **fields}
    return LiveObject(
        code="HF102", key=key, what="a task", ended=lambda: False, creation=creation, **options
    )


def leaked(*objects: LiveObject, known: frozenset[Hashable] = frozenset()) -> list[Hashable]:
    return [each.key for each in judge.leaked_by(Snapshot(objects), ["test"], known)]


def test_what_an_owner_created_is_its_leak_and_no_other() -> None:
    assert leaked(live(1, "test"), live(2, "other"), live(3)) == [1]


def test_what_was_not_recorded_is_a_leak_if_it_is_new() -> None:
    objects = live(1, recorded=False), live(2, recorded=False)
    assert leaked(*objects, known=frozenset({1})) == [2]
    assert judge.keys_without_owner(Snapshot([*objects, live(3, "test")])) == {1, 2}


def test_what_a_library_keeps_is_no_leak() -> None:
    assert leaked(live(1, "test", library="anyio")) == []


def test_a_leak_is_reported_once() -> None:
    first = live(1, "test")
    assert leaked(first) == [1]
    assert first.creation is not None
    first.creation.reported = True
    assert leaked(first) == []


def test_a_part_is_no_leak_while_the_whole_is_there() -> None:
    part = live(1, "test", part_of=lambda: 2)
    assert leaked(part) == [1]
    assert leaked(part, live(2, "test")) == [2]
    assert leaked(part, live(2, "test", library="anyio")) == [1]


def test_what_ends_by_itself_is_no_leak_after_the_grace() -> None:
    stays, ends = live(1, "test"), live(2, "test", ends_by_itself=True)
    assert leaked(stays, ends) == [1, 2]
    assert judge.remaining([stays, ends]) == [stays]


def test_on_a_closing_loop_only_what_cannot_outlive_it_is_a_leak() -> None:
    objects = (
        live(1, "any"),
        live(2),
        live(3, recorded=False, check="timers"),
        live(4, "any", check="threads"),
        live(5, "any", check="resources"),
    )
    assert [each.key for each in judge.leaked_on_loop(Snapshot(objects))] == [1, 3]
