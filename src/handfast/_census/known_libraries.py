"""What libraries keep alive on purpose: tasks, threads and child processes that are not leaks.

One table. To accept another library's background work, add a row; the names were read in the
version given there, so look there first if one is reported after an upgrade.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

What: TypeAlias = Literal[
    "task",  # the qualified name of the coroutine function
    "thread name",  # the beginning of the thread's name
    "thread class",  # the beginning of the name of the module that defines the thread's class
    "child process",  # a part of its command line
    "task container",  # the top-level package of the class or module that holds it
    "exception handler",  # the beginning of the name of the module that defines the function
    "default executor",  # the prefix of its threads' names
]


_CPYTHON = "CPython 3.11.7"
UNKNOWN = "a version that was not noted"


class Known(NamedTuple):
    """Something that a library keeps, and how it is recognised."""

    library: str
    what: What
    name: str
    why: str
    read_from: str
    """The version in which the name was read."""


_WAITPID = "a child watcher waits for each child in a thread, which ends with the child"
_DEBUGGER = "the program cannot end a debugger's threads"
_CLEARED = "it removes finished tasks by itself"
_HELPER = "it ends with the program, and there is no public way to end it earlier"
_DEFAULT = "the event loop shuts it down"
_TEST_RUNNER = "its pytest plugin runs all tests and fixtures in this task"
_NOT_READ = "its test runner installs a handler that does not read the errors"
_IDLE = "a thread of its cache that is idle, and ends by itself after ten seconds"
_THREAD_POOL = "the pool of `to_thread`, which its event loop ends"

# joblib's loky starts the helpers of multiprocessing in the same way, under its own module names.
_TABLE = (
    Known("anyio", "task", "TestRunner._run_tests_and_fixtures", _TEST_RUNNER, "anyio 4.16.0"),
    Known("asyncio", "thread name", "waitpid-", _WAITPID, UNKNOWN),
    Known("asyncio", "thread name", "asyncio-waitpid-", _WAITPID, _CPYTHON),
    Known("trio", "thread name", "Trio thread ", _IDLE, "trio 0.35.0"),
    Known("pytest-timeout", "thread name", "pytest_timeout ", "the timer of a test", UNKNOWN),
    Known("anyio", "thread class", "anyio._backends.", _THREAD_POOL, "anyio 4.16.0"),
    Known("pydevd", "thread class", "_pydevd_bundle.", _DEBUGGER, "debugpy, commit 3a9f7d6"),
    Known("pydevd", "thread class", "pydevd", _DEBUGGER, UNKNOWN),
    Known("debugpy", "thread class", "debugpy", _DEBUGGER, UNKNOWN),
    Known("tqdm", "thread class", "tqdm._monitor", "one for all bars", "tqdm, commit 0e8f839"),
    Known("multiprocessing", "child process", "resource_tracker import main", _HELPER, _CPYTHON),
    Known("multiprocessing", "child process", "forkserver import main", _HELPER, _CPYTHON),
    Known("asyncio", "task container", "asyncio", _CLEARED, _CPYTHON),
    Known("concurrent.futures", "task container", "concurrent", _CLEARED, _CPYTHON),
    Known("weakref", "task container", "weakref", _CLEARED, _CPYTHON),
    Known("weakref", "task container", "_weakrefset", _CLEARED, _CPYTHON),
    Known("handfast", "task container", "handfast", _CLEARED, "this version"),
    Known("anyio", "exception handler", "anyio.", _NOT_READ, "anyio 4.16.0"),
    Known("asyncio", "default executor", "asyncio", _DEFAULT, _CPYTHON),
    Known("uvloop", "default executor", "uvloop", _DEFAULT, "uvloop 0.23.0"),
)

# Every task that is created passes through here.
_BY_WHAT = {what: [known for known in _TABLE if known.what == what] for what in get_args(What)}

OPENS_CONNECTIONS_THROUGH = {"httpx": ("httpcore", "anyio")}
"""Packages that open the connections of another one (read in httpx 0.28.1). anyio connects in a task
of its own, which does not show for whom. So a connection that the program opens with anyio while
an httpx client is open counts as the client's."""


def library_that_keeps(what: What, name: str) -> str:
    """The library that keeps an object of this name on purpose; empty if none does."""
    return next((known.library for known in _BY_WHAT[what] if _fits(known, name)), "")


def _fits(known: Known, name: str) -> bool:
    if known.what == "child process":
        return known.name in name
    if known.what in ("thread name", "thread class", "exception handler"):
        return name.startswith(known.name)
    return name == known.name
