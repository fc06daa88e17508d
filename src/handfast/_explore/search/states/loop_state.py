"""The state of a loop, and of everything that it leads to, at the moment of a choice.

Differences without consequences are left out: how many steps it took, the numbers of the tasks, in
which order events were posted.
"""

from __future__ import annotations

import random
from types import CodeType, FrameType
from typing import Any

from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.loop.external_events import Channel
from handfast._explore.loop.stepping import Stepper
from handfast._explore.search.states import UnknownState
from handfast._explore.search.states.object_graph import Graph

# The functions of the loop that may be on the stack at a choice, with the locals that decide how they
# continue.
_FRAMES: dict[CodeType, tuple[str, ...]] = {
    Stepper.choose.__code__: ("kind", "options"),
    ExploredLoop._pick.__code__: (),
    ExploredLoop._arrivals.__code__: ("wake",),
    ExploredLoop._poll.__code__: ("wake",),
    ExploredLoop._fire.__code__: ("wake", "due", "count"),
    ExploredLoop._reorder.__code__: ("low", "high", "end"),
    ExploredLoop._hand_over.__code__: (),
    Stepper._between.__code__: (),
    Stepper.pass_instant.__code__: (),
    Stepper.run_batch.__code__: ("todo",),
}
_TOP = ExploredLoop._run_once.__code__
# Attributes of the loop that do not influence what follows, or are written below in another form.
_LEFT_OUT = frozenset(
    {
        "_asyncgens", "_baton", "_clock_resolution", "_closed",
        "_coroutine_origin_tracking_enabled", "_coroutine_origin_tracking_saved_depth",
        "_current_handle", "_debug", "_internal_fds", "_now", "_old_agen_hooks", "_period",
        "_ready", "_scheduled", "_thread_id", "_timer_cancelled_count", "_timers", "events",
        "lateness", "slow_callback_duration", "stepper",
    }
)  # fmt: skip


def state_of(loop: Any, frame: FrameType | None) -> int | None:
    """The state of `loop` at a choice in `frame`; None if it is unknown."""
    try:
        place = _place(loop, frame)
        if loop._baton is not None and loop._baton.workers:
            raise UnknownState("threads, whose stacks are their own")
        now = round(loop._now, 9)
        graph = Graph(loop, now)
        graph.add(place, now, round(loop.lateness, 9))
        graph.add(loop.lateness_state())
        graph.write(list(loop._ready), loop.timers())
        for channel in sorted(loop.events.waiting, key=lambda c: _rank(loop, c)):
            graph.write(channel)
        _write_evidence(graph, loop)
        for name, value in sorted(vars(loop).items()):
            if name not in _LEFT_OUT:
                graph.write(name, value)
        _write_the_rest(graph, loop)
    except Exception:  # UnknownState, or an object of the program that cannot be read
        return None
    return graph.digest()


def _place(loop: Any, frame: FrameType | None) -> tuple[Any, ...]:
    """Where in the loop's own code the choice is made.

    UnknownState if code of the program is on the stack: it would continue in the middle of a step.
    """
    place: list[Any] = []
    while frame is not None and frame.f_code is not _TOP:
        names = _FRAMES.get(frame.f_code)
        here = frame.f_locals
        if names is None or (here["self"] is not loop and here["self"] is not loop.stepper):
            raise UnknownState("the choice is in the middle of a step")
        place += (frame.f_code.co_name, frame.f_lasti, *(here.get(name) for name in names))
        frame = frame.f_back
    return tuple(place)


def _rank(loop: Any, channel: Channel) -> tuple[Any, ...]:
    """A channel's place in the text. Any order will do that is the same for equal states."""
    owner = loop.tasks.index(channel.owner) if channel.owner in loop.tasks else -1
    first = channel.queue[0]
    return channel.name, owner, max(first.at, loop._now), first.label, first.order


def _write_evidence(graph: Graph, loop: Any) -> None:
    """What the verdict depends on."""
    stepper = loop.stepper
    graph.add(hash(random.getstate()[1]))
    graph.add([cancel.task for cancel in stepper.accepted], stepper.victims)
    graph.add(sorted(stepper.pending_cancels.values()), sorted(stepper.survived_cancel))
    graph.add(repr(stepper.not_blamed), stepper.lost_servers)
    graph.write(stepper.own, stepper.complaints, stepper.cancelled_tasks, stepper.invariant)
    graph.write(stepper.foreign_timers)


def _write_the_rest(graph: Graph, loop: Any) -> None:
    """The tasks that nothing refers to, if they can still have an effect."""
    for task in loop.tasks:
        if not graph.met(task) and (not task.done() or task._log_traceback):
            graph.add("alone")
            graph.write(task)
    graph.add(
        sorted(
            f"{generator.ag_code.co_qualname} {generator.ag_frame.f_lasti}"
            for generator in loop._asyncgens
            if generator.ag_frame is not None
        )
    )
