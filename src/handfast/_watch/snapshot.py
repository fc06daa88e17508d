"""`Snapshot`: what is alive in a process at one moment, as plain data.

The agent makes it, a socket or a file carries it as JSON, and every view shows it. It has names,
lines and numbers only: never the value of a local variable, an argument or a result.

Ages are in seconds, durations of the loop in milliseconds. `None` means "not known": an object
was created before the watch began.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

VERSION = 1
"""The version of the format; a reader refuses a newer one."""

_LARGEST = 2**64

AGE_BUCKETS = 24
"""Bucket 0 counts ages below 2**-6 s, bucket i those below 2**(i - 6) s, the last one the rest."""


class SnapshotError(ValueError):
    """Data that is no snapshot, or one of a newer version."""


@dataclass(frozen=True, slots=True)
class WatchedProcess:
    """The process that the snapshot shows."""

    pid: int
    program: str
    """The name of the script or module, without its arguments."""
    python: str
    handfast: str
    watched_for: float
    """Seconds since the watch began."""


@dataclass(frozen=True, slots=True)
class SlowCallback:
    """A line of the program that held up a loop."""

    line: str
    count: int
    worst: float
    """In milliseconds."""


@dataclass(frozen=True, slots=True)
class LoopState:
    """An event loop."""

    id: int
    kind: str
    """The class, such as "uvloop.Loop"."""
    thread: str
    running: bool
    tasks: int
    lag_p50: float | None = None
    lag_p99: float | None = None
    lag_worst: float | None = None
    blocked_for: float = 0.0
    """For how many seconds one callback has held up the loop; 0 if none does."""
    blocked_at: tuple[str, ...] = ()
    """The stack of that callback, the innermost line last."""
    slow: tuple[SlowCallback, ...] = ()


@dataclass(frozen=True, slots=True)
class Growth:
    """The tasks of a place grow in number, in a way that load does not explain."""

    per_thousand: float
    """How many of a thousand new tasks stay."""
    windows: int
    """In how many windows in a row."""


@dataclass(frozen=True, slots=True)
class CreationPlace:
    """A line that creates tasks, and how many of them there are."""

    id: int
    file: str
    line: int
    function: str
    coroutine: str
    """What most of its tasks run."""
    alive: int
    created: int
    """Since the watch began."""
    oldest: float | None = None
    ages: tuple[int, ...] = ()
    """How many of the live tasks are how old: `AGE_BUCKETS` numbers."""
    waiting_at: str = ""
    """Where most of its tasks wait."""
    growth: Growth | None = None

    @property
    def finished(self) -> int:
        """How many of its tasks have ended."""
        return self.created - self.alive

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@dataclass(frozen=True, slots=True)
class LiveTask:
    """A pending task."""

    id: int
    name: str
    coroutine: str
    loop: int
    place: int | None = None
    """The `CreationPlace`; None if it was created before the watch began."""
    age: float | None = None
    waiting_at: tuple[str, ...] = ()
    """The lines of its await stack, the innermost last; empty while it runs or is about to."""
    waits_for: str = ""
    """The innermost awaited object in words, such as "Queue.get" or "Future"."""
    awaits: tuple[int, ...] = ()
    """The tasks that it awaits."""
    scope: int | None = None


@dataclass(frozen=True, slots=True)
class LiveScope:
    """A `handfast.Scope`."""

    id: int
    name: str
    created_at: str
    state: str
    tasks: int
    parent: int | None = None
    """The scope that holds it."""


@dataclass(frozen=True, slots=True)
class KeptTasks:
    """Finished tasks that a container still refers to."""

    container: str
    """By attribute path, such as "attribute _log of app.Hub"."""
    count: int
    place: int | None = None


@dataclass(frozen=True, slots=True)
class NeverWakes:
    """Tasks that wait for something that nothing alive can complete: only a cancel ends them."""

    count: int
    waiting_at: str
    waits_for: str
    oldest: float | None = None
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is alive in a process at one moment.

    >>> taken = Snapshot(WatchedProcess(1, "app.py", "3.13.0", "0.2.0", 60.0), taken_at=0.0)
    >>> Snapshot.from_json(taken.to_json()) == taken
    True
    """

    process: WatchedProcess
    taken_at: float
    """Seconds since the epoch."""
    loops: tuple[LoopState, ...] = ()
    places: tuple[CreationPlace, ...] = ()
    tasks: tuple[LiveTask, ...] = ()
    """At most as many as were requested, the oldest first."""
    tasks_left_out: int = 0
    scopes: tuple[LiveScope, ...] = ()
    kept: tuple[KeptTasks, ...] = ()
    never_wakes: tuple[NeverWakes, ...] = ()
    not_checked: tuple[str, ...] = ()
    """What could not be looked at, a sentence each."""
    version: int = field(default=VERSION)

    @property
    def alive(self) -> int:
        """The number of pending tasks."""
        return sum(loop.tasks for loop in self.loops)

    def to_json(self) -> str:
        """The snapshot as JSON; `docs/api/watch.md` has the schema."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Snapshot:
        """Read a snapshot; `SnapshotError` if it is none."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SnapshotError(f"this is not JSON: {error}") from None
        if not isinstance(data, dict) or not isinstance(data.get("version"), int):
            raise SnapshotError("this is no snapshot: it has no version")
        if data["version"] > VERSION:
            raise SnapshotError(
                f"this snapshot has version {data['version']}, made by a newer handfast; "
                f"this one reads up to version {VERSION}"
            )
        snapshot: Snapshot = _read(cls, data, "snapshot")
        return snapshot


@cache
def _types_of(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _read(kind: Any, data: Any, path: str) -> Any:
    """A record from a dict; keys that this version does not know are ignored."""
    if not isinstance(data, dict):
        raise SnapshotError(f"{path} is not an object")
    known = {
        name: _value(hint, data[name], f"{path}.{name}")
        for name, hint in _types_of(kind).items()
        if name in data
    }
    try:
        return kind(**known)
    except TypeError as error:
        raise SnapshotError(f"{path}: {str(error).partition(') ')[2]}") from None


def _value(hint: Any, value: Any, path: str) -> Any:
    if isinstance(hint, UnionType):
        if value is None:
            return None
        hint = next(each for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise SnapshotError(f"{path} is not a list")
        return tuple(_value(get_args(hint)[0], each, f"{path}[]") for each in value)
    if hint in (int, float, str, bool):
        if not isinstance(value, (int, float) if hint is float else hint):
            raise SnapshotError(f"{path} is not {hint.__name__}")
        # A larger number is no count, and sums of such ones cannot be printed.
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise SnapshotError(f"{path} is too large")
        return value
    return _read(hint, value, path)
