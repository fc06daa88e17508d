"""Births: noted where things are made and for whom, while somebody asks for it."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.casebook import captures
from holdfast.census import births, owned_by, recording
from holdfast.census.birth import Birth, birth_here, is_library
from holdfast.census.hooks import Hook


class Plain:
    pass


class Slotted:
    __slots__ = ("__weakref__",)


class Strict:
    def __setattr__(self, name: str, value: object) -> None:
        raise ValueError(f"no {name} here")


def made(thing: Any) -> Birth:
    births.note(thing, 0)
    birth = births.of(thing)
    assert birth is not None
    return birth


@pytest.mark.parametrize("kind", [Plain, Slotted, Strict])
def test_whatever_a_thing_takes_its_birth_is_known(kind: type) -> None:
    thing = kind()
    with owned_by("somebody"):
        birth = made(thing)
    assert birth.owner == "somebody"
    assert birth.origin.function == "made"
    assert birth.origin.source == "births.note(thing, 0)"
    assert birth.package == ""
    assert births.of(kind()) is None


def test_a_birth_goes_with_its_thing() -> None:
    thing = Slotted()
    key = id(thing)
    birth = weakref.ref(thing)
    made(thing)
    assert key in births._OTHERS
    del thing
    gc.collect()
    assert birth() is None
    assert key not in births._OTHERS


def test_an_entry_of_something_else_with_the_same_id_is_not_believed() -> None:
    first, second = Slotted(), Slotted()
    made(first)
    births._OTHERS[id(second)] = births._OTHERS[id(first)]
    assert births.of(second) is None
    del births._OTHERS[id(second)]


def test_an_attribute_of_that_name_that_is_no_birth_is_not_believed() -> None:
    thing: Any = Plain()
    thing._holdfast_birth = "mine"
    assert births.of(thing) is None


def test_a_thing_without_a_birth_has_none() -> None:
    thing = Plain()
    births.register(thing, None)
    assert births.of(thing) is None
    assert birth_here(None, None) is None


def test_phases_nest_and_what_was_is_there_again() -> None:
    before = births.owner_now()
    with owned_by("outer"):
        with owned_by("inner"):
            assert births.owner_now() == "inner"
        assert births.owner_now() == "outer"
        with births.owned_here_by("closer"):
            assert births.owner_now() == "closer"
        assert births.owner_now() == "outer"
    assert births.owner_now() == before


def test_a_line_of_the_standard_library_is_no_line_of_the_program() -> None:
    assert is_library(asyncio.__file__)
    assert is_library(pytest.__file__)
    assert not is_library(captures.__file__)  # a program, though it lies in the package
    assert is_library(births.__file__)
    assert not is_library(__file__)


# --- hooks -------------------------------------------------------------------------------------


def doubled(original: Any) -> Any:
    return lambda *args: 2 * original(*args)


class Base:
    def value(self) -> int:
        return 1


class Derived(Base):
    pass


@pytest.mark.parametrize("where", [Base, Derived])
def test_a_hook_puts_back_what_was_there(where: type[Base]) -> None:
    before = dict(vars(where))
    hook = Hook(where, "value", doubled)
    hook.put_in()
    assert where().value() == 2
    hook.take_out()
    assert where().value() == 1
    assert dict(vars(where)) == before


def test_a_hook_that_somebody_has_covered_stays() -> None:
    place = SimpleNamespace(value=lambda: 1)
    hook = Hook(place, "value", doubled)
    hook.put_in()
    ours: Any = place.value

    def theirs() -> Any:
        return 10 * ours()

    place.value = theirs
    hook.take_out()
    assert place.value is theirs
    assert place.value() == 20


def test_a_hook_may_stand_where_nothing_was() -> None:
    hook = Hook(Derived, "nothing", lambda original: lambda self: original)
    hook.put_in()
    assert Derived().nothing() is None  # type: ignore[attr-defined]
    hook.take_out()
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
def test_the_hooks_go_in_with_the_first_and_out_with_the_last() -> None:
    before = standing()
    with recording():
        during = standing()
        assert during != before
        with recording():
            assert standing() == during
        assert standing() == during


@pytest.mark.usefixtures("as_before")
def test_hooks_go_out_also_when_one_of_them_cannot_go_in(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.census import resources

    def broken() -> Iterator[Hook]:
        raise RuntimeError("cannot")
        yield

    monkeypatch.setattr(resources, "hooks", broken)
    with pytest.raises(RuntimeError, match="cannot"), recording():
        pass
    monkeypatch.undo()
    with recording():
        assert asyncio.run(_birth_of_a_task()) is not None


@pytest.mark.usefixtures("as_before")
def test_outside_of_recording_nothing_is_noted() -> None:
    assert asyncio.run(_birth_of_a_task()) is None


async def _birth_of_a_task() -> Birth | None:
    task = asyncio.create_task(asyncio.sleep(0))
    await task
    return births.of(task)
