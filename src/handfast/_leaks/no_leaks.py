"""`no_leaks`: a block that must not leak anything, outside of pytest."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack

from handfast._asyncio_internals import running_loop, warn_if_untested
from handfast._census import CHECKS, DEFAULT, owned_here_by, recording
from handfast._leaks.audit import GRACE, Audit, Finding
from handfast._leaks.leak import Leak, LeakError


class NoLeaks:
    """A block that must not leak; `leaks` has what it leaked, once it has ended."""

    def __init__(self, checks: tuple[str, ...], grace: float, cancel: bool) -> None:
        self._checks = checks
        self._grace = grace
        self._audit = Audit(cancel=cancel)
        self._within = ExitStack()
        self.leaks: tuple[Leak, ...] = ()

    @property
    def not_checked(self) -> tuple[str, ...]:
        """What could not be checked."""
        return tuple(self._audit.not_checked)

    def _begin(self) -> None:
        warn_if_untested(stacklevel=3)
        self._within.enter_context(recording())
        self._audit.remember(self._checks)
        self._within.enter_context(owned_here_by(self))

    def _end(self, findings: list[Finding], error: BaseException | None) -> None:
        self.leaks = tuple(leak for _, leak in findings)
        if not self.leaks:
            return
        if error is None:
            raise LeakError(self.leaks)
        # The block's own error propagates, with the leaks as notes.
        for leak in self.leaks:
            error.add_note(str(leak))

    async def __aenter__(self) -> NoLeaks:
        self._begin()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with self._within:
            findings = await self._audit.leaked_here_by([self], self._checks, self._grace)
        self._end(findings, error)

    def __enter__(self) -> NoLeaks:
        if running_loop() is not None:
            raise RuntimeError(
                "an event loop runs here: write `async with handfast.leaks.no_leaks()`"
            )
        self._begin()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        with self._within:
            findings = self._audit.leaked_by([self], self._checks, self._grace)
        self._end(findings, error)


def no_leaks(
    *, check: Collection[str] = DEFAULT, grace: float = GRACE, cancel: bool = True
) -> NoLeaks:
    """A block that must not leak anything: it raises `LeakError` if it does.

    Use `async with` where a loop runs, `with` where none does. `check` names the kinds of objects
    that are checked; `grace` is the time in seconds that objects which are about to end get.
    Leaked tasks are cancelled, in bounded rounds, unless `cancel` is false. If the block itself
    raises, its error propagates with the leaks as notes.

    >>> import asyncio
    >>> async def main():
    ...     async with no_leaks(grace=0):
    ...         task = asyncio.create_task(asyncio.sleep(60), name="poll")
    >>> try:
    ...     asyncio.run(main())
    ... except* Leak as group:
    ...     print(group.exceptions[0])
    HF102 task-left-over: task 'poll' running sleep
        created at  ... in main
    ...
    """
    if isinstance(check, str):
        check = (check,)
    for name in check:
        if name not in CHECKS:
            raise ValueError(f"no check is called {name!r}; there are {', '.join(CHECKS)}")
    if grace < 0:
        raise ValueError(f"the grace is a number of seconds, not {grace!r}")
    return NoLeaks(tuple(check), grace, cancel)
