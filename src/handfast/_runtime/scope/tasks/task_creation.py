"""How the runtime creates tasks without `loop.create_task`, and the hook to observe that.

On asyncio's own loops and on uvloop's, without a task factory, `loop.create_task` adds nothing
but two Python frames, so three functions call `new_task` directly:

    Scope.spawn                 its short path         `python -m benchmarks.compare spawn`
    TaskRegistry.create_task    all other tasks        `python -m benchmarks.compare keyed`
    SubmitQueue._start_calls    calls from threads     `python -m benchmarks.compare submit`

The first and the third have the body of the second inlined. The benchmark beside each guards
that: a function call per task is five per cent of a spawn.
"""

from __future__ import annotations

import sys
from asyncio import Task
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handfast._runtime.arguments import close_unstarted
from handfast._runtime.cancel_reason import line_of_cancel
from handfast._runtime.scope.tasks.task_wrapper import AnyCoroutine, ShownCoroutine, enter

if TYPE_CHECKING:
    from handfast._runtime.scope.tasks.task_registry import TaskRegistry


class TrackedTask(Task[Any]):
    """A task of a scope. It shows the user's coroutine instead of the wrapper that it runs.

    The steps are those of the C implementation: nothing here is called while the task runs.
    """

    __slots__ = ("shown",)

    # Set by those who create the task. A slot, because an ended wrapper refers to nothing.
    shown: AnyCoroutine

    @property
    def _coro(self) -> Any:
        """What asyncio shows in the repr, the stack and the log of slow callbacks
        (`base_tasks`, all versions)."""
        shown = getattr(self, "shown", None)
        # Not get_coro(): see wrapper_of.
        return super()._coro if shown is None else shown  # type: ignore[misc]

    def get_coro(self) -> Any:
        return self._coro

    def cancel(self, msg: Any = None) -> bool:
        if not self.done():
            enter(wrapper_of(self))
        return super().cancel(line_of_cancel(sys._getframe(1)) if msg is None else msg)


def wrapper_of(task: Task[Any]) -> Any:
    """The coroutine that a task runs: the wrapper, if it is a task of a scope.

    Not for ended tasks: `get_coro()` of an eager one crashes CPython 3.12.1.
    """
    coro = Task.get_coro(task) if isinstance(task, TrackedTask) else task.get_coro()
    return coro.wrapper if isinstance(coro, ShownCoroutine) else coro


def close_lost_wrapper(
    registry: TaskRegistry, key: object, shown: AnyCoroutine | None, task: Task[Any]
) -> None:
    """A task behind a factory is done. If the factory has put a coroutine around ours and the
    task was cancelled before its first step, ours was never entered again: close it here."""
    wrapper = registry.wrappers.pop(key, None)
    if wrapper is None or key not in registry.live:
        return
    wrapper.close()
    # One that had no stack for its first step has ended without its `finally`.
    if registry.live.pop(key, None) is not None:
        if shown is not None:
            close_unstarted(shown)
        registry.on_task_ended()


new_task: Callable[..., TrackedTask] = TrackedTask
"""Creates a task. The hook: a tool may replace it, as a program replaces `sys.excepthook`, by a
function with the same arguments that calls the one before it."""
