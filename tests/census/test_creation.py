"""Creations: recorded with their line and their owner, during a recording."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from handfast._census import creation_log, owned_by, recording
from handfast._census.creation import Creation, creation_in
from handfast._census.kinds import KINDS
from handfast._census.patch import Patch


class Plain:
    pass


class Slotted:
    __slots__ = ("__weakref__",)


class Strict:
    def __setattr__(self, name: str, value: object) -> None:
        raise ValueError(f"no {name} here")


def made(live: Any) -> Creation:
    creation_log.record(live, 0)
    creation = creation_log.creation_of(live)
    assert creation is not None
    return creation


@pytest.mark.parametrize("kind", [Plain, Slotted, Strict])
def test_a_creation_is_stored_for_any_type(kind: type) -> None:
    live = kind()
    with owned_by("somebody"):
        creation = made(live)
    assert creation.owner == "somebody"
    assert creation.origin.function == "made"
    assert creation.origin.source == "creation_log.record(live, 0)"
    assert creation.package == ""
    assert creation_log.creation_of(kind()) is None


def test_a_creation_is_dropped_with_its_object() -> None:
    live = Slotted()
    key = id(live)
    creation = weakref.ref(live)
    made(live)
    assert key in creation_log._WITHOUT_ATTRIBUTES
    del live
    gc.collect()
    assert creation() is None
    assert key not in creation_log._WITHOUT_ATTRIBUTES


def test_the_entry_of_another_object_with_the_same_id_is_ignored() -> None:
    first, second = Slotted(), Slotted()
    made(first)
    creation_log._WITHOUT_ATTRIBUTES[id(second)] = creation_log._WITHOUT_ATTRIBUTES[id(first)]
    assert creation_log.creation_of(second) is None
    del creation_log._WITHOUT_ATTRIBUTES[id(second)]


def test_an_attribute_of_that_name_that_is_no_creation_is_ignored() -> None:
    live: Any = Plain()
    live._handfast_creation = "mine"
    assert creation_log.creation_of(live) is None


def test_an_object_that_was_not_recorded_has_no_creation() -> None:
    live = Plain()
    creation_log.store(live, None)
    assert creation_log.creation_of(live) is None
    assert creation_in(None, None) is None


def test_phases_nest() -> None:
    before = creation_log.current_owner()
    with owned_by("outer"):
        with owned_by("inner"):
            assert creation_log.current_owner() == "inner"
        assert creation_log.current_owner() == "outer"
        with creation_log.owned_here_by("closer"):
            assert creation_log.current_owner() == "closer"
        assert creation_log.current_owner() == "outer"
    assert creation_log.current_owner() == before


# --- patches -------------------------------------------------------------------------------------


def doubled(original: Any) -> Any:
    return lambda *args: 2 * original(*args)


class Base:
    def value(self) -> int:
        return 1


class Derived(Base):
    pass


@pytest.mark.parametrize("where", [Base, Derived])
def test_a_patch_restores_the_original(where: type[Base]) -> None:
    before = dict(vars(where))
    patch = Patch(where, "value", doubled)
    patch.install()
    assert where().value() == 2
    patch.uninstall()
    assert where().value() == 1
    assert dict(vars(where)) == before


def test_a_patch_that_was_patched_over_stays() -> None:
    place = SimpleNamespace(value=lambda: 1)
    patch = Patch(place, "value", doubled)
    patch.install()
    ours: Any = place.value

    def theirs() -> Any:
        return 10 * ours()

    place.value = theirs
    patch.uninstall()
    assert place.value is theirs
    assert place.value() == 20


def test_a_patch_may_add_an_attribute() -> None:
    patch = Patch(Derived, "nothing", lambda original: lambda self: original)
    patch.install()
    assert Derived().nothing() is None  # type: ignore[attr-defined]
    patch.uninstall()
    assert not hasattr(Derived, "nothing")


# --- recording ---------------------------------------------------------------------------------

WATCHED = (asyncio.BaseEventLoop, asyncio.base_events.Server, threading.Thread)


def standing() -> list[Any]:
    return [dict(vars(each)) for each in WATCHED]


@pytest.fixture
def as_before() -> Iterator[None]:
    before = standing()
    yield
    assert standing() == before


@pytest.mark.usefixtures("as_before")
def test_patches_are_installed_with_the_first_recording_and_removed_after_the_last() -> None:
    before = standing()
    with recording():
        during = standing()
        assert during != before
        with recording():
            assert standing() == during
        assert standing() == during


@pytest.mark.usefixtures("as_before")
def test_patches_are_removed_also_if_one_of_them_cannot_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> Iterator[Patch]:
        raise RuntimeError("cannot")
        yield

    monkeypatch.setitem(KINDS, "threads", replace(KINDS["threads"], patches=broken))
    with pytest.raises(RuntimeError, match="cannot"), recording():
        pass
    monkeypatch.undo()
    with recording():
        assert asyncio.run(_creation_of_a_task()) is not None


@pytest.mark.usefixtures("as_before")
def test_nothing_is_recorded_outside_of_a_recording() -> None:
    assert asyncio.run(_creation_of_a_task()) is None


async def _creation_of_a_task() -> Creation | None:
    task = asyncio.create_task(asyncio.sleep(0))
    await task
    return creation_log.creation_of(task)
