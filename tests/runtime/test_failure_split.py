"""Operational and clean-up errors are distinguished by phase, at any depth, and nothing is dropped (S3.6)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import handfast
from handfast._runtime.failure import is_cleanup, mark_cleanup, resurface
from tests.support.failures import errors_into

# --- any tree ------------------------------------------------------------------------------------


@dataclass
class Node:
    """A group of this kind, or a single error: the number of one of a pool, so that some are shared."""

    kind: str
    members: list[Node]
    number: int = 0


singles = st.builds(Node, st.just("single"), st.just([]), st.integers(0, 7))
trees = st.recursive(
    singles,
    lambda inner: st.builds(
        Node, st.sampled_from(["group", "clean-up"]), st.lists(inner, min_size=1, max_size=4)
    ),
    max_leaves=25,
)


def built(node: Node, pool: list[Exception]) -> Exception:
    if node.kind == "single":
        return pool[node.number]
    members = [built(member, pool) for member in node.members]
    if node.kind == "clean-up":
        return handfast.errors.CleanupErrors("closing", members)
    return ExceptionGroup("unhandled errors in a TaskGroup", members)


def phases(node: Node, in_cleanup: bool) -> Iterator[tuple[int, bool]]:
    """The numbers in the tree, each with the phase of the place where it stands."""
    in_cleanup = in_cleanup or node.kind == "clean-up"
    if node.kind == "single":
        yield node.number, in_cleanup
    for member in node.members:
        yield from phases(member, in_cleanup)


@settings(max_examples=150, deadline=None, database=None)
@given(trees, st.sets(st.integers(0, 7)))
def test_every_error_of_any_tree_appears_exactly_once_and_in_its_phase(
    tree: Node, marked: set[int]
) -> None:
    """S3.6: one that stands in both phases is operational, so that it cannot be hidden."""
    pool: list[Exception] = [ValueError("all have the same text") for _ in range(8)]
    for number in marked:
        mark_cleanup(pool[number])
    failure = handfast.split_errors(built(tree, pool))

    places = list(phases(tree, False))
    operational = {n for n, in_cleanup in places if not in_cleanup and n not in marked}
    number_of = {id(error): number for number, error in enumerate(pool)}
    assert Counter(number_of[id(error)] for error in failure.operational) == Counter(operational)
    assert Counter(number_of[id(error)] for error in failure.cleanup) == Counter(
        {n for n, _ in places} - operational
    )


def test_there_is_no_limit_to_the_depth() -> None:
    """S3.6"""
    error: Exception = ValueError("work")
    for _ in range(20_000):
        error = ExceptionGroup("nested", [error])
    failure = handfast.split_errors(error)
    assert [type(e) for e in failure.operational] == [ValueError]
    assert not is_cleanup(error)
    mark_cleanup(error, whole=True)
    assert is_cleanup(error)
    while isinstance(error, ExceptionGroup):  # taken apart by hand: its own end would recurse
        error = error.exceptions[0]


def test_what_is_shared_a_thousand_times_over_is_counted_once_and_at_once() -> None:
    """S3.6: two to the sixtieth paths lead to it."""
    error: Exception = ValueError("work")
    for _ in range(60):
        error = ExceptionGroup("twice", [error, error])
    assert len(handfast.split_errors(error).operational) == 1
    mark_cleanup(error)
    assert handfast.split_errors(error).cleanup == ()


def test_a_chain_that_is_tied_into_a_ring_has_an_end() -> None:
    one, two = OSError("one"), OSError("two")
    one.__context__, two.__context__ = two, one
    mark_cleanup(one)
    failure = handfast.split_errors(one)
    assert (failure.operational, failure.cleanup) == ((two,), (one,))
    assert handfast.split_errors(mark_cleanup(two)).operational == ()


def test_a_single_error_is_its_own_split() -> None:
    error = ValueError("work")
    assert handfast.split_errors(error) == handfast.types.Failure((error,), ())
    cancelled = asyncio.CancelledError()
    assert handfast.split_errors(cancelled) == handfast.types.Failure((cancelled,), ())


# --- what a clean-up covers ----------------------------------------------------------------------


def covering(clean_up: str) -> BaseException:
    """An operational error in whose course a clean-up fails, in one of several ways."""
    work = LookupError("the work")
    try:
        try:
            raise work
        finally:
            inner = ConnectionError("inside the clean-up")
            if clean_up == "plainly":
                raise mark_cleanup(OSError("clean-up"))
            if clean_up == "from the work":
                raise mark_cleanup(OSError("clean-up")) from work
            if clean_up == "from nothing":
                raise mark_cleanup(OSError("clean-up")) from None
            if clean_up == "after another":
                try:
                    raise mark_cleanup(ConnectionError("another clean-up"))
                finally:
                    raise mark_cleanup(OSError("clean-up"))
            elif clean_up == "in a group":
                raise handfast.errors.CleanupErrors("closing", [OSError("clean-up")])
            else:
                raise inner
    except BaseException as error:
        return error


@pytest.mark.parametrize(
    "clean_up", ["plainly", "from the work", "from nothing", "after another", "in a group"]
)
def test_an_operational_error_that_a_clean_up_has_covered_surfaces(clean_up: str) -> None:
    """S3.6"""
    failure = handfast.split_errors(covering(clean_up))
    assert [repr(error) for error in failure.operational] == ["LookupError('the work')"]
    expected = ["OSError('clean-up')"]
    if clean_up == "after another":
        expected.append("ConnectionError('another clean-up')")
    assert [repr(error) for error in failure.cleanup] == expected


def test_an_operational_group_that_a_clean_up_has_covered_surfaces_in_full() -> None:
    """S3.6"""
    group = ExceptionGroup(
        "work", [ValueError("one"), handfast.errors.CleanupErrors("", [OSError("two")])]
    )
    error = mark_cleanup(OSError("clean-up"))
    error.__context__ = group
    failure = handfast.split_errors(error)
    assert [str(e) for e in failure.operational] == ["one"]
    assert [str(e) for e in failure.cleanup] == ["clean-up", "two"]


def test_an_error_in_flight_when_the_cancel_came_surfaces() -> None:
    """S3.6: a cancel strikes in the `finally` of a failed task, and the clean-up fails as well."""

    async def main() -> BaseException:
        async def work() -> None:
            try:
                raise LookupError("the work")
            finally:
                try:
                    await asyncio.sleep(3600)
                finally:
                    raise OSError("clean-up")

        seen: list[BaseException] = []
        scope = handfast.Scope("s", on_failure=errors_into(seen))
        scope.spawn(work())
        await asyncio.sleep(0)
        await scope.close()
        return seen[0]

    failure = handfast.split_errors(asyncio.run(main()))
    assert [repr(error) for error in failure.operational] == ["LookupError('the work')"]
    assert [repr(error) for error in failure.cleanup] == ["OSError('clean-up')"]


def test_an_error_that_the_clean_up_dealt_with_itself_is_neither() -> None:
    """S3.6: it is the cause of the clean-up error, and no error of its own."""
    try:
        try:
            raise ConnectionError("inside the clean-up")
        except ConnectionError as inner:
            raise OSError("clean-up") from inner
    except OSError as caught:
        error = mark_cleanup(caught, whole=True)
    assert handfast.split_errors(error) == handfast.types.Failure((), (error,))


def test_clean_up_errors_that_came_one_after_the_other_do_not_cover_each_other() -> None:
    """S3.6: the second was raised while the first was being collected; both stand in the group."""
    first, second = OSError("first"), OSError("second")
    second.__context__ = first
    for members in ([first, second], [second, first]):
        failure = handfast.split_errors(handfast.errors.CleanupErrors("closing", members))
        assert failure == handfast.types.Failure((), tuple(members))


def test_an_operational_error_is_not_searched_for_its_cause() -> None:
    try:
        try:
            raise KeyError("cache")
        except KeyError as missing:
            raise LookupError("the work") from missing
    except LookupError as caught:
        error = caught
    assert handfast.split_errors(error) == handfast.types.Failure((error,), ())


# --- by phase, never by text ---------------------------------------------------------------------


def test_the_text_of_an_error_means_nothing() -> None:
    """S3.6: a wrapper once masked whatever spoke of a task group and a clean-up."""
    words = "unhandled errors in a TaskGroup: cleanup cancelled, cancel_scope"
    operational, cleanup = RuntimeError(words), mark_cleanup(RuntimeError(words))
    failure = handfast.split_errors(ExceptionGroup(words, [operational, cleanup]))
    assert failure == handfast.types.Failure((operational,), (cleanup,))
    assert not is_cleanup(operational)


def test_in_a_group_only_that_is_marked_which_a_cancel_or_a_close_has_set_off() -> None:
    """S3.6: a task group may have failed just before it was cancelled."""
    work, flush, ask = ValueError("work"), OSError("flush"), OSError("inside")
    flush.__context__ = ask
    ask.__context__ = asyncio.CancelledError()
    group = mark_cleanup(ExceptionGroup("both", [work, ExceptionGroup("nested", [flush])]))
    assert not is_cleanup(group)
    assert handfast.split_errors(group) == handfast.types.Failure((work,), (flush,))
    assert is_cleanup(mark_cleanup(ExceptionGroup("closed", [flush])))


def test_what_except_star_leaves_over_keeps_its_phases() -> None:
    """S3.6: splitting makes new groups; the phase is with the single errors."""
    flush, work = OSError("flush"), ValueError("work")
    closing = mark_cleanup(ExceptionGroup("closing", [flush, TypeError()]), whole=True)
    try:
        try:
            raise ExceptionGroup(
                "all", [closing, work, handfast.errors.CleanupErrors("", [KeyError("k")])]
            )
        except* TypeError:
            pass
    except ExceptionGroup as rest:
        failure = handfast.split_errors(rest)
    assert failure.operational == (work,)
    assert [type(error) for error in failure.cleanup] == [OSError, KeyError]


@dataclass(frozen=True)
class Frozen(Exception):
    code: int


class Obliging(Exception):
    def __getattr__(self, name: str) -> Any:
        return f"I have {name}"


def test_exceptions_of_odd_classes_are_distinguished_like_any_other() -> None:
    """S3.6: one that cannot be written to; one that claims to have every attribute."""
    work = Obliging("work")
    frozen = Frozen(1)
    frozen.__dict__["__context__"] = None
    assert handfast.split_errors(
        ExceptionGroup("", [work, mark_cleanup(frozen)])
    ) == handfast.types.Failure((work,), (frozen,))
    BaseException.__setattr__(frozen, "__context__", work)
    with pytest.raises(Frozen):
        try:
            raise KeyError
        except KeyError:
            resurface(frozen)
    assert work.__context__ is not None


# --- raised again elsewhere ----------------------------------------------------------------------


def test_an_error_from_another_task_keeps_its_history_when_it_is_raised_again() -> None:
    """S3.6: a plain `raise` would overwrite its context."""
    error, earlier, here = OSError("clean-up"), ConnectionError("earlier"), LookupError("here")
    error.__context__ = earlier
    with pytest.raises(OSError, match="clean-up"):
        try:
            raise here
        except LookupError:
            resurface(error)
    assert error.__context__ is earlier
    assert earlier.__context__ is here
    # Once more, on top of something that knows it already: no ring.
    with pytest.raises(OSError, match="clean-up"):
        try:
            raise here
        except LookupError:
            resurface(error)
    assert here.__context__ is None


def test_an_operational_error_that_covers_another_shows_both_if_it_says_so() -> None:
    """S3.6"""
    for both in (False, True):
        error, body = ValueError("the stream"), LookupError("the body")
        with pytest.raises(ValueError, match="the stream"):
            try:
                raise body
            except LookupError:
                resurface(error, covering=both)
        assert handfast.split_errors(error).operational == ((error, body) if both else (error,))
    with pytest.raises(ValueError, match="alone"):
        resurface(ValueError("alone"), covering=True)
