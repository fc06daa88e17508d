"""`watch`: a block that must leave nothing behind, outside of pytest."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import ExitStack
from types import TracebackType

from holdfast.census import CHECKS, DEFAULT, owned_here_by, recording
from holdfast.leaks.audit import GRACE, Audit, Finding
from holdfast.leaks.finding import Leak, LeakError

__all__ = ["Watch", "watch"]


class Watch:
    """A block that is watched; what it has left behind is in `leaks` when it has ended."""

    def __init__(self, checks: tuple[str, ...], grace: float, cancel: bool) -> None:
        self._checks = checks
        self._grace = grace
        self._audit = Audit(cancel=cancel)
        self._within = ExitStack()
        self.leaks: tuple[Leak, ...] = ()

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What could not be looked at."""
        return tuple(self._audit.not_checked)

    def _begin(self) -> None:
        self._within.enter_context(recording())
        self._audit.remember(self._checks)
        self._within.enter_context(owned_here_by(self))

    def _end(self, findings: list[Finding], error: BaseException | None) -> None:
        self.leaks = tuple(leak for _, leak in findings)
        if not self.leaks:
            return
        if error is None:
            raise LeakError(self.leaks)
        # The block's own error goes on, and tells of them.
        for leak in self.leaks:
            error.add_note(str(leak))

    async def __aenter__(self) -> Watch:
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._within:
            findings = await self._audit.left_here_by([self], self._checks, self._grace)
        self._end(findings, error)

    def __enter__(self) -> Watch:
        if asyncio._get_running_loop() is not None:
            raise RuntimeError("an event loop runs here: write `async with holdfast.leaks.watch()`")
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._within:
            findings = self._audit.left_by([self], self._checks, self._grace)
        self._end(findings, error)


def watch(*, check: Collection[str] = DEFAULT, grace: float = GRACE, cancel: bool = True) -> Watch:
    """A block that must leave nothing behind: `LeakError` if it does.

    `async with` where a loop runs, `with` where none does. `check` names what is looked at;
    `grace` is the time in seconds that what is on its way out gets to end by itself. What is left
    is told, then its tasks are cancelled in bounded rounds, unless `cancel` is false. An error of
    the block itself goes on, with the leaks as notes.

    >>> import asyncio
    >>> async def main():
    ...     async with watch(grace=0):
    ...         task = asyncio.create_task(asyncio.sleep(60), name="poll")
    >>> try:
    ...     asyncio.run(main())
    ... except* Leak as group:
    ...     print(group.exceptions[0])
    HF102 task-left-over: task 'poll' running sleep
        born       ... in main
    ...
    """
    if isinstance(check, str):
        check = (check,)
    for name in check:
        if name not in CHECKS:
            raise ValueError(f"no check is called {name!r}; there are {', '.join(CHECKS)}")
    if grace < 0:
        raise ValueError(f"the grace is a number of seconds, not {grace!r}")
    return Watch(tuple(check), grace, cancel)
