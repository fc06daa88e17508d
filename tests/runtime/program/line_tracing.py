"""Two threads, and every line of the one at which the other can come in between.

A race between threads shows itself once in a million runs. Here the one thread is traced; before
its k-th line it stops, and the other does all that it has to do. With k from the first line to the
last these are all schedules in which the other is not itself interrupted.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Lines(Generic[T]):
    """One run: `traced` in a thread of its own, `other` before its line number `at`."""

    def __init__(
        self,
        modules: tuple[ModuleType, ...],
        at: int,
        other: Callable[[], object],
        waits: Callable[[], bool],
    ) -> None:
        self._files = {module.__file__ for module in modules}
        self._at = at
        self._waits = waits
        self._other = threading.Thread(target=self._do, args=(other,), daemon=True)
        self._errors: list[BaseException] = []
        self.seen = 0

    def run(self, traced: Callable[[], T]) -> T:
        values: list[T] = []

        def body() -> None:
            before = sys.gettrace()  # a measurement of coverage, say
            sys.settrace(self._enter)
            try:
                values.append(traced())
            except BaseException as error:
                self._errors.append(error)
            finally:
                sys.settrace(before)

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        thread.join()
        if self._other.ident is not None:
            self._other.join()
        if self._errors:
            raise self._errors[0]
        return values[0]

    def _do(self, other: Callable[[], object]) -> None:
        try:
            other()
        except BaseException as error:
            self._errors.append(error)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._files else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            if self.seen == self._at:
                self._other.start()
                # One that needs a lock which is held here goes on when it is free.
                if not self._waits():
                    self._other.join()
            self.seen += 1
        return self._line


def before_every_line(
    modules: tuple[ModuleType, ...],
    prepare: Callable[[], tuple[Callable[[], T], Callable[[], object], Callable[[T], object]]],
    waits: Callable[[], bool] = lambda: False,
) -> Iterator[int]:
    """For each line: prepare anew (what is traced, the other, the check), run, check."""
    at = 0
    while True:
        traced, other, check = prepare()
        lines: Lines[T] = Lines(modules, at, other, waits)
        value = lines.run(traced)
        if lines.seen <= at:
            other()
            check(value)
            return
        check(value)
        yield at
        at += 1
