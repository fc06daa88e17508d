"""The end of a scope: of its block, of a kept scope on its loop or from a thread, of a dropped one.

`shutdown` says when tasks are cancelled; this file says who waits for it, and where the errors go.
"""

from __future__ import annotations

import asyncio
import warnings
from contextlib import suppress
from dataclasses import replace

from handfast._asyncio_internals import running_loop
from handfast._runtime.arguments import CLOSE_TIMEOUT
from handfast._runtime.cancel_reason import (
    BLOCK_ENDED,
    CancelReason,
    failure_reason,
    outer_reason,
)
from handfast._runtime.failure import CleanupErrors, mark_operational, raise_fatal
from handfast._runtime.report import CloseReport
from handfast._runtime.scope.ancestry import starts_eagerly
from handfast._runtime.scope.shutdown import Shutdown, on_scope_dropped, report_on, report_unseen
from handfast._runtime.scope.states import Event, State
from handfast._runtime.scope.tasks.task_registry import AnyTask, TaskRegistry
from handfast._runtime.scope.tasks.task_wrapper import YIELD_ONCE
from handfast._runtime.threads.cross_thread_call import run_across_threads
from handfast._runtime.threads.submit_queue import SubmitQueue
from handfast._runtime.uncancellable import cleanup_time, redeliver_cancel, wait_uncancelled


class Ending:
    """How one scope ends."""

    __slots__ = (
        "_cancelling_before",
        "_queue",
        "_reported",
        "_seen",
        "_shutdown",
        "_timeout",
        "grace",
        "registry",
    )

    def __init__(
        self,
        registry: TaskRegistry,
        queue: SubmitQueue,
        grace: float | None,
        timeout: float | None,
    ) -> None:
        self.registry = registry
        self._queue = queue
        self.grace = grace
        self._timeout = timeout
        self._shutdown: Shutdown | None = None
        self._cancelling_before = 0
        self._reported = False
        # Whether a closer has got the report of this shutdown.
        self._seen = False

    def default_timeout(self, grace: float) -> float:
        """How long a close with this grace may take, if the caller does not say."""
        return grace + CLOSE_TIMEOUT if self._timeout is None else self._timeout

    # --- a kept scope ----------------------------------------------------------------------

    async def close(self, grace: float, timeout: float, reason: CancelReason) -> CloseReport:
        """Close on the scope's own loop, in any task that is not part of its work."""
        cancelled = await self._finish_eager_step()
        self.refuse_own_work("wait for the end of")
        report, again = await self._close(grace, timeout, reason)
        if cancelled := cancelled or again:
            # If no other closer has got the report, or will.
            if not (self._seen or self.registry.joiners):
                report_unseen(self.registry, report)
            raise cancelled
        self._seen = True
        return report

    async def _finish_eager_step(self) -> asyncio.CancelledError | None:
        """Let the code that has just created the running task await it, if it will."""
        current = asyncio.current_task(self.registry.bind())
        if current is not None and starts_eagerly(current):
            try:
                await YIELD_ONCE
            except asyncio.CancelledError as error:
                return error
        return None

    def refuse_own_work(self, what: str) -> None:
        """Raise if a task of the scope waits for the running task: it would wait for itself."""
        registry = self.registry
        current = asyncio.current_task(registry.bind())
        if current is None or (waiting := registry.waiting_task(current)) is None:
            return
        why = "" if waiting is current else f" (task {waiting.get_name()!r} waits for it)"
        raise RuntimeError(
            f"task {current.get_name()!r} cannot {what} {registry.describe()}, of whose work it "
            f"is a part{why}; do that in another task, or use scope.cancel()"
        )

    async def _close(
        self, grace: float, timeout: float, reason: CancelReason, host: AnyTask | None = None
    ) -> tuple[CloseReport, asyncio.CancelledError | None]:
        registry = self.registry
        registry.bind()
        registry.move(Event.CLOSE_WITH_GRACE if grace else Event.CLOSE_NOW, reason)
        self._queue.refuse_waiting()
        cancelled = None
        if not registry.live:
            registry.move(Event.EMPTY)
        elif self._shutdown is None or self._shutdown.task.done():
            self._seen = False
            self._shutdown = Shutdown(registry, grace, timeout, host)
            cancelled = await self._wait(self._shutdown.task, None)
        else:
            self._shutdown.shorten(grace, timeout)
            cancelled = await self._wait(self._shutdown.task, timeout)
        self._reported = True
        return report_on(registry, reason.origin), cancelled

    async def _wait(self, task: AnyTask, timeout: float | None) -> asyncio.CancelledError | None:
        closer = asyncio.current_task()
        assert closer is not None
        joiners = self.registry.joiners
        joiners.append(closer)
        try:
            return await wait_uncancelled({task}, timeout)
        finally:
            joiners.remove(closer)

    def close_from_thread(self, grace: float, timeout: float, reason: CancelReason) -> CloseReport:
        """Close from another thread than the loop's."""
        registry = self.registry
        loop = registry.loop
        if loop is not None and running_loop() is loop:
            raise RuntimeError(
                f"close_from_thread() would block the loop that {registry.describe()} needs to "
                "close; on this thread use: await scope.close()"
            )
        if registry.forked:
            registry.bind()  # raises
        self._reported = True
        self._queue.stop_accepting()
        if loop is None:
            registry.move(Event.EMPTY)
            return report_on(registry, reason.origin)
        # The loop gets a little less than the caller, so that its report arrives in time.
        report = run_across_threads(
            loop, lambda: self.close(grace, cleanup_time(timeout), reason), timeout
        )
        if report is None and not loop.is_running():
            with suppress(RuntimeError):  # the loop is closed: its watchers cannot be woken
                registry.move(Event.CLOSE_NOW if registry.live else Event.EMPTY, reason)
            self._queue.fail_all()
        self._queue.refuse_waiting()
        return report or report_on(registry, reason.origin)

    def on_dropped(self) -> None:
        """The scope is collected: report it, and cancel its tasks, if it was not closed."""
        registry = self.registry
        # After a fork the tasks live on, in the parent process.
        if self._reported or registry.forked:
            return
        try:
            if registry.live:
                names = ", ".join(sorted({task.get_name() for task in registry.tasks()})[:10])
                warnings.warn(
                    f"{registry.describe()} was dropped without close; its tasks are "
                    f"cancelled: {names}",
                    ResourceWarning,
                    stacklevel=3,
                )
        finally:  # the warning may be an error
            on_scope_dropped(registry, self.default_timeout(0.0))
            if not registry.is_running():
                self._queue.fail_all()

    # --- a scope that another one holds ------------------------------------------------------

    @property
    def waits_for_tasks(self) -> bool:
        """Whether it waits for its tasks when it is left: it has no grace of its own."""
        return self.grace is None

    def stop_waiting(self, reason: CancelReason) -> None:
        """The scope that holds it is closed: cancel what it would wait for."""
        if self.waits_for_tasks:
            self.registry.cancel_all(reason, with_host=False)

    # --- a block ---------------------------------------------------------------------------

    def enter(self) -> None:
        """Enter the block of `async with` in the running task, which is its host."""
        registry = self.registry
        loop = registry.bind()
        registry.require_open("entering")
        if registry.host is not None or registry.state is not State.OPEN:
            raise RuntimeError(f"{registry.describe()} has been entered already")
        host = asyncio.current_task(loop)
        if host is None:
            raise RuntimeError(f"{registry.describe()} can be entered in a task only")
        self.refuse_own_work("enter")
        registry.host = host
        registry.joiners.append(host)
        self._cancelling_before = host.cancelling()

    async def leave(self, error: BaseException | None) -> bool | None:
        """Leave the block with the error of its body: `__aexit__`."""
        registry = self.registry
        if running_loop() is not registry.loop:
            # The host is collected after the end of its loop, or this process is a fork of the
            # one in which the loop runs: nothing can be awaited.
            if error is None:
                registry.bind()  # raises
            return None
        host, registry.host = registry.host, None
        try:
            return await self._leave(host, error)
        finally:
            if host is not None:
                registry.joiners.remove(host)

    async def _leave(self, host: AnyTask | None, error: BaseException | None) -> bool:
        registry = self.registry
        cancelled = error if isinstance(error, asyncio.CancelledError) else None
        grace = self.grace or 0.0
        reason = BLOCK_ENDED
        if error is not None:
            if registry.closed_by is None and cancelled is None:
                registry.closed_by = error
            if cancelled is None:
                reason = failure_reason("the block of its scope", error)
            else:
                reason = outer_reason(host, cancelled)
            registry.move(Event.CLOSE_NOW, reason)
        else:
            registry.move(Event.BODY_ENDED)
            if self.grace is None and (cancelled := await self._join()):
                reason = outer_reason(host, cancelled)
                registry.move(Event.CLOSE_NOW, reason)
        unexplained = host if cancelled is not None and not cancelled.args else None
        timeout = self.default_timeout(grace)
        report, again = await self._close(grace, timeout, reason, unexplained)
        cancelled = cancelled or again
        if host is not None and host is asyncio.current_task() and registry.host_cancelled:
            cancelled = await self._take_back_interrupt(host, cancelled)
        if (
            cancelled is None
            and isinstance(error, Exception)
            and host is not None
            and host is asyncio.current_task()
            and host.cancelling() > self._cancelling_before
        ):
            cancelled = asyncio.CancelledError()  # clean-up of the body has raised instead of it
        survived = self._cancelling_before if host is asyncio.current_task() else None
        _raise_problems(registry, report, error, cancelled, survived)
        # Without a failure to raise, this was the interrupt of `cancel`: it ends at the block.
        return isinstance(error, asyncio.CancelledError)

    async def _join(self) -> asyncio.CancelledError | None:
        """Wait until the children have ended, or until a close begins."""
        registry = self.registry
        cancelled = None
        while registry.state.takes_work and not cancelled and (busy := registry.busy_part()):
            if busy is not registry:
                registry.cancel_services()
            with busy.watch(busy.never_ending) as reached, registry.watch(-1) as changed:
                try:
                    await asyncio.wait({reached, changed}, return_when=asyncio.FIRST_COMPLETED)
                except asyncio.CancelledError as error:
                    cancelled = error
        return cancelled

    async def _take_back_interrupt(
        self, host: AnyTask, cancelled: asyncio.CancelledError | None
    ) -> asyncio.CancelledError | None:
        """A failed child has cancelled the host. Take back that one cancel (#95289), and return
        `cancelled` if the host was cancelled by others too."""
        if cancelled is None:
            # The body ended before the cancel reached it: receive it here, or it would be
            # raised at the first await after the scope.
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError as error:
                cancelled = error
        if host.uncancel() <= self._cancelling_before:
            return None
        return cancelled


def _raise_problems(
    registry: TaskRegistry,
    report: CloseReport,
    error: BaseException | None,
    cancelled: asyncio.CancelledError | None,
    survived: int | None,
) -> None:
    if isinstance(error, (asyncio.CancelledError, GeneratorExit)):
        error = None  # a request to end, and no error
    if error is not None:
        mark_operational(error)
    if registry.on_failure != "cancel":  # errors were reported when they happened
        fatal = (end for end in report.failed if not isinstance(end.error, Exception))
        report = replace(report, failed=tuple(fatal), cleanup_errors=())
    problems = report.problems(error)
    for problem in problems:
        # A lone BaseException, as pytest.skip(), is raised as it is, too.
        if isinstance(problem, (KeyboardInterrupt, SystemExit)) or (
            len(problems) == 1 and not isinstance(problem, Exception)
        ):
            raise_fatal(problem, [other for other in problems if other is not problem])
    if not problems:
        if cancelled is not None:
            raise cancelled
        return
    if cancelled is not None:
        # The errors are raised, and the cancel after them: nested task groups lose it on
        # 3.11 and 3.12 (#116720).
        redeliver_cancel(cancelled, survived)
    if len(problems) == 1 and isinstance(problems[0], CleanupErrors):
        raise problems[0]
    raise BaseExceptionGroup(f"errors in {registry.describe()}", problems) from None
