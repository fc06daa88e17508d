"""The recorder and the search: planted histories, bounds, text, and a comparison with brute force."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from handfast._explore.oracles.operation import NEVER, Operation
from handfast._explore.oracles.ordering import Ordering, WouldBlock
from handfast.explore import InconsistentHistory, NotChecked, linearizable, serializable
from tests.explore.oracles.models import LockModel, QueueModel, StoreModel


def planted(
    rows: list[tuple[str, int, float, str, tuple[Any, ...], Any]],
) -> list[Operation]:
    """Operations from (task, began, ended, name, args, result or error)."""
    found = []
    for task, began, ended, name, args, result in rows:
        operation = Operation(name, args, {}, task, began, ended)
        failed = isinstance(result, BaseException)
        operation.error, operation.result = (result, None) if failed else (None, result)
        found.append(operation)
    return found


def explained(
    operations: list[Operation], model: Callable[[], Any], *, real_time: bool = True
) -> bool:
    search = Ordering(operations, model, real_time=real_time, final=None, limit=100_000)
    found = search.search()
    assert not found.gave_up
    return found.order is not None


@pytest.mark.parametrize(
    ("model", "rows", "linear", "serial"),
    [
        (StoreModel, [], True, True),
        # A write that is concurrent with the read is seen or not.
        (
            StoreModel,
            [
                ("a", 1, 2, "write", ("x", 0), None),
                ("a", 3, 6, "write", ("x", 1), None),
                ("b", 4, 5, "read", ("x",), 0),
            ],
            True,
            True,
        ),
        # Two reads one after another, the second older than the first.
        (
            StoreModel,
            [
                ("a", 1, 2, "write", ("x", 0), None),
                ("a", 3, 8, "write", ("x", 1), None),
                ("b", 4, 5, "read", ("x",), 1),
                ("b", 6, 7, "read", ("x",), 0),
            ],
            False,
            False,
        ),
        # A read after the end of a write that it does not see: only in some other order.
        (
            StoreModel,
            [
                ("a", 1, 2, "write", ("x", 0), None),
                ("a", 3, 4, "write", ("x", 1), None),
                ("b", 5, 6, "read", ("x",), 0),
            ],
            False,
            True,
        ),
        # The write was cancelled; it took effect later, or never did.
        (
            StoreModel,
            [
                ("a", 1, 2, "write", ("x", 0), None),
                ("a", 3, NEVER, "write", ("x", 1), asyncio.CancelledError()),
                ("b", 4, 5, "read", ("x",), 0),
                ("b", 6, 7, "read", ("x",), 1),
            ],
            True,
            True,
        ),
        # But it cannot take effect before it was called.
        (
            StoreModel,
            [
                ("a", 1, 2, "write", ("x", 0), None),
                ("b", 3, 4, "read", ("x",), 1),
                ("a", 5, NEVER, "write", ("x", 1), asyncio.CancelledError()),
            ],
            False,
            True,
        ),
        # An error that the model raises too is an answer.
        (StoreModel, [("a", 1, 2, "read", ("x",), KeyError("x"))], True, True),
        (StoreModel, [("a", 1, 2, "read", ("x",), ValueError())], False, False),
        (StoreModel, [("a", 1, 2, "read", ("x",), 1)], False, False),
        (StoreModel, [("a", 1, 2, "write", ("x", 1), KeyError())], False, False),
        # Out of order, and one item twice.
        (
            QueueModel,
            [
                ("a", 1, 2, "put", (1,), None),
                ("a", 3, 4, "put", (2,), None),
                ("b", 5, 6, "get", (), 2),
            ],
            False,
            False,
        ),
        (
            QueueModel,
            [
                ("a", 1, 2, "put", (1,), None),
                ("b", 3, 6, "get", (), 1),
                ("c", 4, 5, "get", (), 1),
            ],
            False,
            False,
        ),
        # Two puts at once come out in any order.
        (
            QueueModel,
            [
                ("a", 1, 4, "put", (1,), None),
                ("b", 2, 3, "put", (2,), None),
                ("c", 5, 6, "get", (), 2),
                ("c", 7, 8, "get", (), 1),
            ],
            True,
            True,
        ),
        # Held twice.
        (
            LockModel,
            [("a", 1, 2, "acquire", (), True), ("b", 3, 4, "acquire", (), True)],
            False,
            False,
        ),
    ],
)
def test_planted_histories(
    model: Callable[[], Any], rows: list[Any], linear: bool, serial: bool
) -> None:
    operations = planted(rows)
    assert explained(operations, model) == linear
    assert explained(operations, model, real_time=False) == serial


# --- against brute force -------------------------------------------------------------------------


def by_brute_force(operations: list[Operation], model: Callable[[], Any], real_time: bool) -> bool:
    """Every order of the known operations and of any of the others."""
    known = [each for each in operations if each.known]
    others = [each for each in operations if not each.known]
    for count in range(len(others) + 1):
        for some in itertools.combinations(others, count):
            for order in itertools.permutations([*known, *some]):
                if is_legal(order, real_time) and fits(order, model()):
                    return True
    return False


def is_legal(order: tuple[Operation, ...], real_time: bool) -> bool:
    return not any(
        later.ended < first.began and (real_time or first.task == later.task)
        for first, later in itertools.combinations(order, 2)
    )


def fits(order: tuple[Operation, ...], model: Any) -> bool:
    for each in order:
        try:
            answer = getattr(model, each.name)(*each.args)
        except WouldBlock:
            return False
        except KeyError:
            if each.known and not isinstance(each.error, KeyError):
                return False
            continue
        if each.known and (each.error is not None or answer != each.result):
            return False
    return True


def random_history(draw: random.Random, kind: str) -> list[Operation]:
    times = list(range(1, 11))
    draw.shuffle(times)
    rows: list[Any] = []
    for number in range(5):
        began, ended = sorted(times[2 * number : 2 * number + 2])
        task = f"task {number}"
        value = draw.randrange(2)
        unknown = draw.random() < 0.25
        when: float = NEVER if unknown else ended
        if kind == "store":
            name = draw.choice(["read", "write", "add"])
            args: tuple[Any, ...] = ("x",) if name == "read" else ("x", value)
            result: Any = {"read": draw.choice([0, 1, KeyError()]), "write": None}.get(name, value)
        else:
            name = draw.choice(["put", "get"])
            args, result = ((value,), None) if name == "put" else ((), value)
        rows.append((task, began, when, name, args, result))
    return planted(rows)


@pytest.mark.parametrize(("kind", "model"), [("store", StoreModel), ("queue", QueueModel)])
def test_the_search_agrees_with_brute_force(kind: str, model: Callable[[], Any]) -> None:
    draw = random.Random(kind)
    seen = set()
    for number in range(150):
        operations = random_history(draw, kind)
        real_time = number % 2 == 0
        expected = by_brute_force(operations, model, real_time)
        assert explained(operations, model, real_time=real_time) == expected, operations
        seen.add(expected)
    assert seen == {True, False}


# --- the bound -----------------------------------------------------------------------------------


def test_it_says_when_it_gives_up() -> None:
    history = linearizable(QueueModel, limit=1_000)
    for number in range(12):
        history.begin("put", (number,), {})
    last = history.begin("get", (), {})
    history.end(last, "never put", None)
    with pytest.warns(NotChecked, match="13 operations have more orders than the limit of 1,000"):
        assert not history.check()


def test_memory_of_states_keeps_equal_operations_cheap() -> None:
    """10 equal concurrent writes: 2 ** 10 sets of operations, and not 10! orders."""
    history = linearizable(StoreModel, limit=12_000)
    writes = [history.begin("write", ("x", 1), {}) for _ in range(10)]
    for each in writes:
        history.end(each, None, None)
    history.end(history.begin("read", ("x",), {}), 2, None)
    with pytest.raises(InconsistentHistory):
        history.check()


# --- the recorder --------------------------------------------------------------------------------


def test_what_passes_through_stays_the_same_object() -> None:
    class Connection:
        def __reduce__(self) -> Any:
            raise TypeError("cannot be pickled")

    connection = Connection()
    history = linearizable(QueueModel)
    queue = history.watch(QueueModel())
    queue.put(connection)
    assert queue.get() is connection
    assert history.check()


def test_containers_are_recorded_as_they_were() -> None:
    class Reads:
        def __init__(self) -> None:
            self.items: list[int] = []

        def add(self, item: int) -> list[int]:
            self.items.append(item)
            return self.items

    history = linearizable(Reads)
    reads = history.watch(Reads())
    reads.add(1)
    reads.add(2)
    assert history.check()


def test_special_methods_attributes_and_futures() -> None:
    class Table:
        name = "table"

        def __init__(self) -> None:
            self.rows: dict[str, int] = {}

        def __setitem__(self, key: str, value: int) -> None:
            self.rows[key] = value

        def __len__(self) -> int:
            return len(self.rows)

        def later(self) -> Any:
            return len(self.rows)

        def soon(self) -> Any:
            return "soon"

        def broken(self) -> Any:
            return None

        def lost(self) -> Any:
            return None

    class Real(Table):
        def _future(self) -> asyncio.Future[int]:
            return asyncio.get_running_loop().create_future()

        def later(self) -> Any:
            future = self._future()
            asyncio.get_running_loop().call_soon(future.set_result, len(self.rows))
            return future

        def soon(self) -> Any:
            return asyncio.sleep(0, "soon")

        def broken(self) -> Any:
            future = self._future()
            future.set_exception(ConnectionError())
            return future

        def lost(self) -> Any:
            future = self._future()
            future.cancel()
            return future

        def __iter__(self) -> Any:
            return iter(self.rows)

    async def program() -> None:
        with linearizable(Table) as history:
            table = history.watch(Real())
            table["a"] = 1
            assert (len(table), {*table}) == (1, {"a"})
            table.name = "other"
            assert (table.name, "Real" in repr(table)) == ("other", True)
            assert await table.later() == 1
            assert await table.soon() == "soon"
            with pytest.raises(ConnectionError):
                await table.broken()
            with pytest.raises(asyncio.CancelledError):
                await table.lost()
        names = [each.name for each in history._operations]
        assert names == ["__setitem__", "__len__", "later", "soon", "broken", "lost"]
        assert [each.known for each in history._operations] == [True] * 4 + [False] * 2

    asyncio.run(program())


def test_a_function_is_recorded_under_its_name() -> None:
    def write(store: dict[str, int], key: str, value: int) -> None:
        store[key] = value

    with serializable(StoreModel) as history:
        history.watch(partial(write, {}))("x", value=1)
    assert [each.kwargs for each in history._operations] == [{"value": 1}]
    with pytest.raises(TypeError, match="the model has no method 'print'"):
        history.watch(print)


def test_an_error_in_the_block_is_not_covered_by_the_check() -> None:
    with pytest.raises(ZeroDivisionError), linearizable(StoreModel) as history:
        history.end(history.begin("read", ("x",), {}), 1, None)
        raise ZeroDivisionError


def test_unknown_errors_can_be_added() -> None:
    class DatabaseError(Exception):
        pass

    class Broken(StoreModel):
        def write(self, key: str, value: int) -> None:
            super().write(key, value)
            raise DatabaseError

    for unknown, fits in [((), False), ((DatabaseError,), True)]:
        history = linearizable(StoreModel, unknown=unknown)
        store = history.watch(Broken())
        with pytest.raises(DatabaseError):
            store.write("x", 1)
        assert store.read("x") == 1
        if fits:
            assert history.check()
        else:
            with pytest.raises(InconsistentHistory, match=r"raised DatabaseError, where the model"):
                history.check()


def test_wrong_models_are_named() -> None:
    class Async:
        async def get(self) -> int:
            return 1

    with pytest.raises(TypeError, match="a model is a class"):
        linearizable(StoreModel())  # type: ignore[arg-type]
    history = linearizable(Async)
    asyncio.run(history.watch(Async()).get())
    with pytest.raises(TypeError, match="get of it must not be async"):
        history.check()


# --- the text ------------------------------------------------------------------------------------


def test_the_text_is_compact_and_names_the_answer_of_the_model() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ValueError

    history = linearizable(StoreModel)
    store: Any = history.watch(StoreModel())
    store.write("x" * 500, Silent())
    with pytest.raises(KeyError):
        store.read("y")
    history.begin("write", ("z", 1), {})
    for error in (asyncio.CancelledError(), TimeoutError()):
        history.end(history.begin("write", ("\udc80", 1), {}), None, error)
    history.end(history.begin("read", ("never",), {}), 7, None)
    for number in range(60):
        store.write("n", number)
    with pytest.raises(InconsistentHistory) as caught:
        history.check()
    text = str(caught.value)
    text.encode()
    assert len(text) < 6_000
    for part in (
        "write('xxxxxx",
        "raised KeyError",
        "has not returned",
        "was cancelled",
        "failed with TimeoutError",
    ):
        assert part in text
    assert "  and 26 more\n" in text
    assert "read('never') -> 7, where the model raises KeyError" in text


def test_the_text_of_a_lock_and_of_a_final_state() -> None:
    history = linearizable(LockModel)
    for _ in range(2):
        history.end(history.begin("acquire", (), {}), True, None)
    with pytest.raises(InconsistentHistory, match=r"acquire\(\) -> True, where the model would"):
        history.check()
    history = serializable(LockModel)
    history.watch(LockModel()).acquire()
    with pytest.raises(InconsistentHistory, match="then the final state is another one"):
        history.check(final=lambda model: not model.held)
