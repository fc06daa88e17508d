"""`linearizable` and `serializable`: record the operations of a run, and check them against a model."""

from __future__ import annotations

import asyncio
import itertools
import warnings
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from handfast._explore.loop.task_table import describe
from handfast._explore.oracles.history_text import describe_history
from handfast._explore.oracles.operation import Operation
from handfast._explore.oracles.ordering import Ordering
from handfast._explore.oracles.watched import watched

T = TypeVar("T")
# After these it is not known whether an operation took effect. All others are answers, as a result is.
_UNKNOWN: tuple[type[BaseException], ...] = (OSError, EOFError, TimeoutError)
_LIMIT = 20_000


class InconsistentHistory(AssertionError):
    """No order of the recorded operations gives the results that the program saw."""


class NotChecked(UserWarning):
    """The history has more orders than the limit: it was not checked."""


class History:
    """The operations of one run. Make it inside the program, once for each run.

    As a context manager it checks itself at the end of the block.
    """

    def __init__(
        self,
        model: Callable[[], Any],
        *,
        real_time: bool,
        unknown: tuple[type[BaseException], ...] = (),
        limit: int = _LIMIT,
    ) -> None:
        if not callable(model):
            raise TypeError(f"a model is a class, or a function that makes one, not {model!r}")
        self._model = model
        self._class = type(model())
        self._real_time = real_time
        self._unknown = _UNKNOWN + unknown
        self._limit = limit
        self._clock = itertools.count(1)
        self._operations: list[Operation] = []
        # Weak: a task that the program drops is collected as without a history.
        self._tasks: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()
        self._named: Counter[str] = Counter()

    def watch(self, real: T) -> T:
        """`real`, with its calls recorded: those of which the model has a method of the same name.

        Several objects may be watched, as several clients of one store. A function is recorded
        under its own name.
        """
        result: T = watched(self, real)
        return result

    def check(self, final: Callable[[Any], bool] | None = None) -> bool:
        """Raise InconsistentHistory if no order of the operations explains their results.

        `final` gets the model after the last operation, and says whether that is how the program
        has ended. False, and a warning, if there are too many orders to know.
        """
        ordering = Ordering(
            self._operations,
            self._model,
            real_time=self._real_time,
            final=final,
            limit=self._limit,
        )
        found = ordering.search()
        if found.gave_up:
            message = (
                f"not checked: {len(self._operations):,} operations have more orders than "
                f"the limit of {self._limit:,} steps"
            )
            warnings.warn(message, NotChecked, stacklevel=2)
            return False
        if found.order is None:
            what = "not linearizable" if self._real_time else "not serializable"
            raise InconsistentHistory(describe_history(what, self._operations, found))
        return True

    def __enter__(self) -> History:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.check()

    # --- what a watched object calls ---------------------------------------------------------

    def knows(self, name: str) -> bool:
        """Whether the model has this operation."""
        return any(name in vars(base) for base in self._class.__mro__[:-1])

    def now(self) -> int:
        return next(self._clock)

    def begin(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], began: int | None = None
    ) -> Operation:
        """Record an invocation."""
        began = self.now() if began is None else began
        operation = Operation(name, args, kwargs, self._task(), began)
        self._operations.append(operation)
        return operation

    def end(self, operation: Operation, result: Any, error: BaseException | None) -> None:
        """Record a response."""
        operation.result = result
        operation.error = error
        if error is None or (isinstance(error, Exception) and not isinstance(error, self._unknown)):
            operation.ended = self.now()

    def _task(self) -> str:
        task = asyncio.current_task() if asyncio._get_running_loop() is not None else None
        if task is None:
            return "callback"
        if task not in self._tasks:
            name = describe(task).rpartition("<locals>.")[2]
            self._named[name] += 1
            again = self._named[name]
            self._tasks[task] = name if again == 1 else f"{name}#{again}"
        return self._tasks[task]


def linearizable(
    spec: Callable[[], Any],
    *,
    unknown: tuple[type[BaseException], ...] = (),
    limit: int = _LIMIT,
) -> History:
    """Check that an object behaves as `spec` does, which runs one operation at a time.

    `spec` is a class in plain Python, with a method for each operation. Each operation has to take
    effect at one moment between its call and its return. Where an operation has to wait, the method
    raises `WouldBlock`. One that was cancelled, timed out or failed with an `OSError` may have taken
    effect or not; `unknown` adds to these errors. Other errors have to come from the model too.

    >>> import asyncio
    >>> from handfast.explore import explore
    >>> class Counter:
    ...     def __init__(self):
    ...         self.count = 0
    ...     async def add(self):
    ...         seen = self.count
    ...         await asyncio.sleep(0)
    ...         self.count = seen + 1
    ...         return self.count
    >>> class Model:
    ...     count = 0
    ...     def add(self):
    ...         self.count += 1
    ...         return self.count
    >>> async def program():
    ...     with linearizable(Model) as history:
    ...         counter = history.watch(Counter())
    ...         await asyncio.gather(counter.add(), counter.add())
    >>> print(explore(program).counterexample.error)
    not linearizable: no order of these 2 operations gives these results
      Counter.add      1-3  add() -> 1
      Counter.add#2    2-4  add() -> 1
    longest order that fits: add()
      then add() -> 1, where the model returns 2
    """
    return History(spec, real_time=True, unknown=unknown, limit=limit)


def serializable(
    operations: Callable[[], Any],
    *,
    unknown: tuple[type[BaseException], ...] = (),
    limit: int = _LIMIT,
) -> History:
    """Check that operations give what they give one after another, in some order.

    `operations` is a class in plain Python with a method for each operation: what it does when it
    runs alone. Unlike `linearizable`, an operation may appear to take effect before or after the time
    at which it ran; those of one task stay in their order.

    >>> import asyncio
    >>> from handfast.explore import explore
    >>> class Bank:
    ...     balance = 100
    ...     def withdraw(self, amount):
    ...         if amount > self.balance:
    ...             return False
    ...         self.balance -= amount
    ...         return True
    >>> async def program():
    ...     bank = Bank()
    ...     async def withdraw(amount):
    ...         if amount > bank.balance:
    ...             return False
    ...         await asyncio.sleep(0.01)
    ...         bank.balance -= amount
    ...         return True
    ...     history = serializable(Bank)
    ...     withdraw = history.watch(withdraw)
    ...     await asyncio.gather(withdraw(70), withdraw(60))
    ...     history.check(final=lambda model: model.balance == bank.balance)
    >>> print(str(explore(program).counterexample.error).splitlines()[0])
    not serializable: no order of these 2 operations gives these results
    """
    return History(operations, real_time=False, unknown=unknown, limit=limit)
