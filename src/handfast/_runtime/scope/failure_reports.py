"""Where the failure of a task goes: to the siblings and the group or report of the scope, to a
function of the program, or to the loop's exception handler."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Task
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from handfast._asyncio_internals import callback_package, done_callbacks, has_unread_error
from handfast._runtime.arguments import close_unstarted, is_async_function
from handfast._runtime.failure import append_context, first_report, show_error
from handfast._runtime.report import TaskEnd
from handfast._runtime.scope.states import State
from handfast._runtime.scope.tasks.task_ends import recorded

if TYPE_CHECKING:
    from handfast._runtime.scope.tasks.task_registry import TaskRegistry

AnyTask: TypeAlias = Task[Any]
FailureHandler: TypeAlias = Callable[[TaskEnd], None]
OnFailure: TypeAlias = Literal["cancel", "report"] | FailureHandler

# Steps of the loop within which a task that is woken by a done callback reads the error.
_STEPS_TO_READ = 3


def require_on_failure(value: object) -> None:
    """Check that `value` is what a scope takes as `on_failure`; nothing awaits an async function."""
    if value in ("cancel", "report", None):
        return
    if not callable(value):
        raise ValueError(
            f'on_failure must be "cancel", "report", a function or None, not {value!r}'
        )
    if is_async_function(value):
        raise TypeError(
            f"on_failure must be a plain function, not the async {value!r}, which would not be "
            "awaited; a plain function may spawn a task"
        )


def report_failure(registry: TaskRegistry, key: object, task: AnyTask, end: TaskEnd) -> None:
    """Send an error where `on_failure` says: a group or report, a handler, the loop."""
    error = end.error
    assert error is not None
    if registry.on_failure == "cancel" and registry.state is State.CLOSED and not registry.watchers:
        # A straggler: no group and no report will have its error.
        report_unless_read(task, f"a task of {registry.describe()} failed after the close")
    elif registry.on_failure == "cancel" or not isinstance(error, Exception):
        task.add_done_callback(mark_read)
        registry.abort(end)
    elif not callable(registry.on_failure):  # "report"
        message = f"a task of {registry.describe()} failed"
        if recorded(task).failure is not None:
            report_to_loop(task.get_loop(), message, error, task)
        else:
            report_unless_read(task, message, awaited=key not in registry.held)
    else:
        task.add_done_callback(mark_read)
        if (broken := _call_handler(registry.on_failure, end)) is not None:
            report_to_loop(task.get_loop(), _handler_failed(registry), broken, task)


def _handler_failed(registry: TaskRegistry) -> str:
    return f"the failure handler of {registry.describe()} failed"


def report_error(registry: TaskRegistry, message: str, end: TaskEnd) -> None:
    """Report an error that ends no task, as of a service that is started again."""
    error = end.error
    if callable(registry.on_failure):
        error = _call_handler(registry.on_failure, end)
        message = _handler_failed(registry)
    if error is not None and registry.loop is not None:
        report_to_loop(registry.loop, message, error)


def mark_read(task: AnyTask) -> None:
    """Mark the error as read: it was reported, and asyncio need not log it again."""
    if not task.cancelled():
        task.exception()


def _call_handler(handler: Callable[[TaskEnd], object], end: TaskEnd) -> Exception | None:
    """Call the function that was given as `on_failure`. The error of the call itself, if any."""
    try:
        result = handler(end)
        if isinstance(result, Coroutine):
            close_unstarted(result)
            raise TypeError(
                f"on_failure={handler!r} gave a coroutine, which is not awaited; pass a plain "
                "function, which may spawn a task"
            )
    except Exception as broken:
        if end.error is not None:
            append_context(broken, end.error)  # or the failure itself would be lost
        return broken
    return None


def report_unless_read(task: AnyTask, message: str, *, awaited: bool = True) -> None:
    """Report the failure of a running task when it has ended, unless the program reads it.

    `awaited`: code that waits for the task, with `await`, `wait` or `gather`, gets its error. (A
    stand-in waits for an owner, and does not read.) A done callback says nothing: it may as well
    ignore the error.
    """
    packages = {callback_package(callback) for callback, _ in done_callbacks(task)}
    if not (awaited and "asyncio" in packages):
        steps = _STEPS_TO_READ if packages - {"asyncio", "handfast"} else 0
        task.add_done_callback(partial(_report_if_unread, message, steps))


def _report_if_unread(message: str, steps: int, task: AnyTask) -> None:
    """Report a task, unless its error is read within `steps` of the loop: an eager task fails
    before a caller can await it, and a callback of the program may wake a reader."""
    if not has_unread_error(task, default=True):
        return
    if steps:
        task.get_loop().call_soon(_report_if_unread, message, steps - 1, task)
    elif (error := task.exception()) is not None:
        report_to_loop(task.get_loop(), message, error, task)


def report_to_loop(
    loop: AbstractEventLoop, message: str, error: BaseException, task: AnyTask | None = None
) -> None:
    """Call the loop's exception handler; of a running task when it has ended, because a context
    cannot be entered twice, and the task is in it while it runs."""
    if task is not None and not task.done():
        task.add_done_callback(partial(report_to_loop, loop, message, error))
        return
    context: dict[str, Any] = {"message": message, "exception": error}
    if not first_report(error, loop):
        # Many tasks may fail with one exception object: its traceback is written once.
        context = {"message": f"{message}: {show_error(error)}, which was reported before"}
    if task is not None:
        context["task"] = task
    loop.call_exception_handler(context)
