"""What a program left when it ended: tasks, processes, sockets, threads, timers, generators.

Each function returns the code in the catalogue, a sentence and the lines, or None. The objects of
a simulation come in as arguments: importing their modules here would be circular, because the
loop mixins of the simulations call this module.
"""

from __future__ import annotations

import asyncio
import functools
import gc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from handfast import _await_stack as stacks
from handfast._code_owner import is_program
from handfast._explore.loop.stepped_loop import LeftOver, SteppedLoop
from handfast._explore.loop.task_table import describe
from handfast._origin import Origin

if TYPE_CHECKING:
    from handfast._explore.simulation.network.kernel import Kernel
    from handfast._explore.simulation.network.sockets import FakeSocket
    from handfast._explore.simulation.processes.process_table import Child, ProcessTable
    from handfast._explore.simulation.threads.baton import Baton
    from handfast._explore.simulation.threads.executor import Pool


T = TypeVar("T")
# The code of a task that is left over.
LEFT_OVER = "HF102"
# A program can leave hundreds of thousands of tasks.
_MOST = 100


def left_over(loop: SteppedLoop) -> LeftOver | None:
    """The first kind of leftover that is there, the most serious first."""
    return _tasks(loop) or _outside(loop) or _timers(loop) or _generators(loop)


# --- tasks -------------------------------------------------------------------------------------


def _tasks(loop: SteppedLoop) -> LeftOver | None:
    pending = _pending(loop)
    if pending and not _any_own(loop):
        # Tasks of a library (the handler of a connection, a clean-up) may need a moment to end.
        loop.settle(seconds=loop.grace)
        pending = _pending(loop)
    if not pending:
        return None
    lines = listed(pending, lambda task: f"{describe(task)} waiting at {position(task)}")
    return LEFT_OVER, f"{_are(pending, 'task')} still pending after the program ended", lines


def _any_own(loop: SteppedLoop) -> bool:
    """Whether a pending task was created by the program itself."""
    numbered = enumerate(loop.tasks.numbered())
    own = loop.stepper.own
    return any(task is not None and not task.done() and number in own for number, task in numbered)


def listed(tasks: Sequence[T], line: Callable[[T], str]) -> tuple[str, ...]:
    """A line for each, up to a number that can be read."""
    lines = [line(task) for task in tasks[:_MOST]]
    if len(tasks) > _MOST:
        lines.append(f"and {len(tasks) - _MOST:,} more")
    return tuple(lines)


def _pending(loop: SteppedLoop) -> list[asyncio.Task[Any]]:
    return [task for task in loop.tasks if not task.done()]


def position(task: asyncio.Task[Any]) -> str:
    """The line at which a task waits, else the line that defines its coroutine."""
    chain = stacks.await_chain(task)
    return chain[-1] if chain else definition(task)


def definition(task: asyncio.Task[Any]) -> str:
    """The line that defines the coroutine of a task."""
    code = getattr(task.get_coro(), "cr_code", None)
    return f"{code.co_filename}:{code.co_firstlineno} in {code.co_qualname}" if code else repr(task)


# --- processes, sockets, threads ---------------------------------------------------------------


def _outside(loop: SteppedLoop) -> LeftOver | None:
    found = loop.left_outside()
    if found is not None and found[0] == "HF741" and loop.stepper.lost_servers:
        return None  # a cancel inside `create_server` lost the server; the program cannot close it
    return found


def processes_left(table: ProcessTable) -> LeftOver | None:
    """A running child, a child whose exit was not awaited, or a running grandchild."""
    children = list(table.children.values())
    running = [child for child in children if not child.process.ending]
    if running:
        return (
            "HF701",
            f"{_named(running)} still running after the program ended",
            _started(running),
        )
    # Late means: the program had ended, so no task could have awaited it.
    unreaped = [child for child in children if child.late]
    if unreaped:
        message = f"{_named(unreaped)} exiting after the program ended, and no task waits for it"
        return "HF702", message, _started(unreaped)
    # A grandchild has no line of its own; the child that started it has.
    alive = [process for process, _ in table.grandchildren if not process.ending]
    if alive:
        parents = {parent for process, parent in table.grandchildren if process in alive}
        message = f"{_are(alive, 'grandchild process')} still running after the program ended"
        return "HF703", message, _started([c for c in children if c.process.pid in parents])
    return None


def _named(children: list[Child]) -> str:
    names = ", ".join(child.process.name for child in children)
    return f"{names} {'is' if len(children) == 1 else 'are'}"


def _started(children: list[Child]) -> tuple[str, ...]:
    return tuple(f"{child.process.name} started at {child.origin}" for child in children)


def network_left(kernel: Kernel) -> LeftOver | None:
    """A listening server, a transport that was dropped, or an open transport."""
    servers = [s for s in kernel.sockets.values() if s.listening and s.handed_over]
    if servers:
        message = f"{_are(servers, 'server')} still listening after the program ended"
        return "HF741", message, _created(servers)
    if kernel.dropped:
        message = f"{_are(kernel.dropped, 'transport')} no longer referenced and not closed"
        return "HF742", message, _created(kernel.dropped)
    # A transport that is closing, or whose peer has closed, ends by itself.
    transports = [
        sock
        for sock, transport in kernel.transports()
        if not _is_closing(transport) and sock.peer is not None and not sock.peer.closed
    ]
    if transports:
        message = f"{_are(transports, 'transport')} still open after the program ended"
        return "HF742", message, _created(transports)
    return None


def _is_closing(transport: Any) -> bool:
    tls = getattr(transport.get_protocol(), "_app_transport", None)
    return bool(transport.is_closing() or (tls is not None and tls.is_closing()))


def _created(sockets: Sequence[FakeSocket]) -> tuple[str, ...]:
    return tuple(f"{sock.name}, created at {sock.origin or 'an unknown line'}" for sock in sockets)


def threads_left(baton: Baton, default: Pool | None) -> LeftOver | None:
    """A running thread, or an executor that was not shut down. `asyncio.run` shuts down the
    default executor itself."""
    # An idle thread of an executor is reported as the executor, below.
    idle = {worker for pool in baton.pools.values() for worker in pool.workers if worker.idle}
    running = [worker for worker in baton.workers if not worker.ended and worker not in idle]
    if running:
        message = f"{_are(running, 'thread')} still running after the program ended"
        return "HF711", message, tuple(f"{worker.name}: {worker.position()}" for worker in running)
    pools = [
        pool
        for executor, pool in baton.pools.items()
        if pool is not default and not executor._shutdown and pool.made_in_run()
    ]
    if pools:
        message = f"{_are(pools, 'executor')} not shut down after the program ended"
        return "HF712", message, tuple(f"{p.name}, first used at {p.used_at}" for p in pools)
    return None


# --- timers ------------------------------------------------------------------------------------


def _timers(loop: SteppedLoop) -> LeftOver | None:
    timers = [_callback(timer) for timer in loop.timers() if _is_unusual(timer, loop)]
    if not timers:
        return None
    return "HF721", f"{_are(timers, 'timer')} still armed after the program ended", tuple(timers)


def timers_left(loop: SteppedLoop) -> tuple[str, ...]:
    """The callbacks of the armed timers, as text."""
    # A set, because the number of such timers may differ between schedules.
    return tuple(sorted({_callback(timer) for timer in loop.timers()}))


def _is_unusual(timer: Any, loop: SteppedLoop) -> bool:
    """Whether the program started a timer, or a normal run does not leave one like it. A timer
    that a library leaves in every run (a cache that expires) is part of how it works."""
    # A builtin has no code; then the loop has noted who started the timer.
    code = getattr(_function(timer._callback), "__code__", None)
    if timer not in loop.stepper.foreign_timers if code is None else is_program(code.co_filename):
        return True
    usual = loop.settings.usual
    return usual is not None and _callback(timer) not in usual


def _callback(timer: Any) -> str:
    function = _function(timer._callback)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def _function(callback: Any) -> Any:
    while isinstance(callback, functools.partial):
        callback = callback.func
    return getattr(callback, "__func__", callback)


# --- async generators --------------------------------------------------------------------------


def _generators(loop: SteppedLoop) -> LeftOver | None:
    if not _live_generators(loop):
        return None
    # A generator in a reference cycle is unreachable; only the collector has not run yet.
    gc.collect()
    loop.settle()
    live = _live_generators(loop)
    if not live:
        return None
    lines = tuple(str(Origin(each.ag_frame.f_code, each.ag_frame.f_lasti)) for each in live)
    return "HF731", f"{_are(live, 'async generator')} not closed after the program ended", lines


def _live_generators(loop: Any) -> list[Any]:
    return [generator for generator in loop._asyncgens if generator.ag_frame is not None]


def _are(things: Sequence[object], what: str) -> str:
    if len(things) == 1:
        return f"1 {what} is"
    return f"{len(things)} {what}{'es' if what.endswith('s') else 's'} are"
