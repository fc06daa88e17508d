"""Names of functions and methods, by what they mean.

The checker knows few types: `append` means that a value is added to a container, whatever the
receiver. Each meaning is defined once, here. A name that only one rule needs is added in that rule,
because each name here changes the findings of every rule that uses the set.
"""

from __future__ import annotations

LOGGING = frozenset({"debug", "info", "warning", "warn", "error", "exception", "critical", "log"})
"""Methods of a logger. They do not keep their arguments."""

INSPECTING = frozenset({"len", "bool", "isinstance", "print", "repr", "str", "id", "any", "all"})
"""Functions that neither keep nor return their argument."""

# `cancelled` and `done` read the state. `cancel` is not here, although it does not wait either.
TASK_QUERIES = frozenset(
    {"done", "cancelled", "exception", "add_done_callback", "set_name", "get_name"}
)
"""Methods of a task that neither end it nor wait for it."""

CALLING_BACK = {
    "add_signal_handler": 1, "call_soon": 0, "call_soon_threadsafe": 0, "call_later": 1,
    "call_at": 1, "add_reader": 1, "add_writer": 1, "add_done_callback": 0,
}  # fmt: skip
"""Functions that call an argument and drop its result, with the position of the argument."""

# --- containers ----------------------------------------------------------------------------------

PUTTING_ONE = frozenset({"add", "append", "appendleft", "insert", "setdefault"})
"""Methods that add one element to a container."""

PUTTING = PUTTING_ONE | {"extend", "update"}
"""Methods that add elements to a container."""

TAKING = frozenset({"pop", "popitem", "popleft", "remove", "discard", "difference_update"})
"""Methods that remove some elements of a container."""

COPYING = frozenset({"list", "set", "tuple", "sorted", "reversed", "frozenset"})
"""Functions that return a new container with the same elements."""

ITERATING = COPYING | {"iter", "next"}
"""Functions that return the elements of a container, or one of them."""

# `get` and `pop` are also methods of a queue. A queue then counts as a container of what it delivers,
# which is what the rules want: a task from a queue is a task of that queue.
ELEMENTS = frozenset({"values", "items", "get", "pop", "copy", "popitem", "popleft", "setdefault"})
"""Methods that return the elements of a container, or one of them."""

# --- waiting and ending --------------------------------------------------------------------------

WAITING = frozenset({"wait", "as_completed", "gather", "shield", "wait_for"})
"""Functions of asyncio that wait for their arguments."""

WAITING_FOR_INPUT = frozenset(
    {"get", "wait", "sleep", "recv", "read", "readline", "join", "acquire"}
)
"""Coroutine methods that do nothing but wait for one thing."""

# `cancel` is not here: it is an operation of its own. `release` is, for locks and pooled connections.
CLOSING = frozenset(
    {"close", "aclose", "kill", "terminate", "shutdown", "stop", "disconnect", "release"}
)
"""Methods that end the object."""

GROUPS = frozenset({"ExceptionGroup", "BaseExceptionGroup"})
"""Exceptions that hold other exceptions."""
