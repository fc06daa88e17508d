"""Who holds which lock: a lock or semaphore that a cancelled or failed task did not give back.

Every acquire and release of asyncio's and anyio's locks is recorded, with the line of the program
that called it. A line counts only if in the plain run each task that acquires there releases
itself: a semaphore that one task acquires and another one releases is a signal, not a resource.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import locks
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from handfast._code_owner import code_owner, in_package, is_asyncio
from handfast._explore.hosted.patches import Patch, patched
from handfast._explore.loop.task_table import describe
from handfast._explore.verdict.verdict import Verdict
from handfast._origin import Origin

CODE = "HF531"
_ACQUIRE = ("acquire", "acquire_on_behalf_of")
_ACQUIRE_NOWAIT = ("acquire_nowait", "acquire_on_behalf_of_nowait")
_RELEASE = ("release", "release_on_behalf_of")
_ANYIO = {"Lock": "lock", "Semaphore": "semaphore", "CapacityLimiter": "capacity limiter"}


@dataclass(eq=False, slots=True)
class _Hold:
    """One acquisition: by which task, of what, and at which line of which function."""

    task: asyncio.Task[Any] | None
    kind: str
    line: str
    code: CodeType | None
    # The frames that were running: those of the call of a library that took it are among them.
    frames: tuple[FrameType, ...] = ()


class Accounts:
    """The acquisitions of one run."""

    def __init__(self, ended: Callable[[], bool] = lambda: False) -> None:
        # Whether the program has ended, and only its loop is still shut down.
        self._ended = ended
        # By the identity of the lock, which is kept alive by the list.
        self._held: dict[int, list[_Hold]] = {}
        self._kept: dict[int, object] = {}
        self._unpaired: set[str] = set()

    def unpaired(self) -> set[str]:
        """The lines whose acquisitions are released by another task, or not at all."""
        return self._unpaired | {hold.line for holds in self._held.values() for hold in holds}

    def lost(
        self,
        unpaired: set[str],
        test: CodeType | None = None,
        *,
        within: FrameType | None = None,
    ) -> Verdict | None:
        """A lock that a task has kept which was cancelled or has failed.

        Not one that the body of the test takes: it is what the test is about. `within`: only one
        that was taken inside this call.
        """
        for holds in self._held.values():
            for hold in holds:
                task = hold.task
                if task is None or hold.line in unpaired or not task.done():
                    continue
                if test is not None and hold.code is test:
                    continue
                if within is not None:
                    if within in hold.frames:
                        return _kept(hold, within.f_code.co_qualname, "was cancelled")
                    continue
                if task.cancelled() or task.exception() is not None:
                    how = "was cancelled" if task.cancelled() else "failed"
                    return _kept(hold, describe(task), how)
        return None

    # --- what the patches call -----------------------------------------------------------------

    def take(self, lock: object, kind: str, frame: FrameType | None) -> None:
        if self._ended():
            return
        task = _current_task()
        caller = _caller(frame)
        if caller is None:
            hold = _Hold(task, kind, "an unknown line", None)
        else:
            code = caller.f_code
            line = str(Origin(code, caller.f_lasti))
            hold = _Hold(task, kind, line, code, tuple(_outer(caller)))
        self._held.setdefault(id(lock), []).append(hold)
        self._kept[id(lock)] = lock

    def give(self, lock: object) -> None:
        holds = self._held.get(id(lock))
        if not holds:
            return
        task = _current_task()
        own = next((hold for hold in reversed(holds) if hold.task is task), None)
        hold = own or holds[0]
        holds.remove(hold)
        if own is None and not self._ended():
            self._unpaired.add(hold.line)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Record for as long as this lasts."""
        with patched(patch for each in _lock_classes() for patch in self._patches(*each)):
            yield

    def _patches(self, place: Any, kind: str) -> Iterator[Patch]:
        for name, real in list(vars(place).items()):
            if name in _ACQUIRE:
                yield place, name, self._acquire(real, kind)
            elif name in _ACQUIRE_NOWAIT:
                yield place, name, self._acquire_nowait(real, kind)
            elif name in _RELEASE:
                yield place, name, self._release(real)

    def _acquire(self, real: Callable[..., Any], kind: str) -> Callable[..., Any]:
        async def acquire(lock: Any, *args: Any, **kwargs: Any) -> Any:
            got = await real(lock, *args, **kwargs)
            if got is not False:
                self.take(lock, kind, sys._getframe(1))
            return got

        return _named(acquire, real)

    def _acquire_nowait(self, real: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def acquire_nowait(lock: Any, *args: Any, **kwargs: Any) -> Any:
            got = real(lock, *args, **kwargs)
            frame = sys._getframe(1)
            # The other form of acquire may call this one, and records it itself.
            if not frame.f_code.co_name.startswith("acquire"):
                self.take(lock, kind, frame)
            return got

        return _named(acquire_nowait, real)

    def _release(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def release(lock: Any, *args: Any, **kwargs: Any) -> Any:
            got = real(lock, *args, **kwargs)
            self.give(lock)
            return got

        return _named(release, real)


def _kept(hold: _Hold, who: str, how: str) -> Verdict:
    what = f"{who} {how} and did not release its {hold.kind}"
    return Verdict(CODE, what, (f"acquired at {hold.line}",))


def _outer(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _named(function: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = real.__name__
    function.__qualname__ = real.__qualname__
    return function


def _lock_classes() -> list[tuple[Any, str]]:
    """The classes whose acquisitions are recorded, with the word for a message.

    A BoundedSemaphore releases through Semaphore, a Condition through its Lock.
    """
    found: list[tuple[Any, str]] = [(locks.Lock, "lock"), (locks.Semaphore, "semaphore")]
    anyio = sys.modules.get("anyio._backends._asyncio")
    for name, kind in _ANYIO.items():
        if isinstance(place := getattr(anyio, name, None), type):
            found.append((place, kind))
    return found


def _current_task() -> asyncio.Task[Any] | None:
    return asyncio.current_task() if asyncio._get_running_loop() is not None else None


def _caller(frame: FrameType | None) -> FrameType | None:
    """The innermost frame outside asyncio and the explorer."""
    while frame is not None:
        name = frame.f_code.co_filename
        inside = is_asyncio(name) or in_package(name, "explore") or "/anyio/" in name
        if not inside and code_owner(name) != "stdlib":
            return frame
        frame = frame.f_back
    return None
