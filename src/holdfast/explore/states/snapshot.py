"""The state of a loop, and of all that hangs on it, at the moment of a choice.

What differs though nothing follows from it is left out: how many steps it took, the numbers of
the tasks, in which order what is outside was sent off.
"""

from __future__ import annotations

import random
from types import CodeType, FrameType
from typing import Any

from holdfast.explore.loop import ExploredLoop
from holdfast.explore.states.graph import Graph
from holdfast.explore.states.unknown import Unknown
from holdfast.explore.stepping import Stepping
from holdfast.explore.world import Channel

__all__ = ["state_of"]

# The functions between which a choice is asked, with the locals on which the rest of them hangs.
_ASKING: dict[CodeType, tuple[str, ...]] = {
    Stepping.choose.__code__: ("kind", "options"),
    ExploredLoop._pick.__code__: (),
    ExploredLoop._arrivals.__code__: ("wake",),
    ExploredLoop._poll.__code__: ("wake",),
    ExploredLoop._fire.__code__: ("wake", "due", "count"),
    ExploredLoop._reorder.__code__: ("low", "high", "end"),
    ExploredLoop._hand_over.__code__: (),
    Stepping._between.__code__: (),
    Stepping._pause.__code__: (),
    Stepping._run_batch.__code__: ("todo",),
    Stepping._run_permuted.__code__: ("todo",),
}
_TOP = ExploredLoop._run_once.__code__
# What the loop has for its own use, or is said below in a better way.
_LEFT_OUT = frozenset(
    {
        "_asyncgens",
        "_baton",
        "_cancels",
        "_clock_resolution",
        "_closed",
        "_coroutine_origin_tracking_enabled",
        "_coroutine_origin_tracking_saved_depth",
        "_current_handle",
        "_debug",
        "_internal_fds",
        "_now",
        "_observer",
        "_old_agen_hooks",
        "_quiet_until",
        "_ready",
        "_scheduled",
        "_stretch",
        "_struck",
        "_thread_id",
        "_timer_cancelled_count",
        "_timers",
        "_watched",
        "accepted",
        "decider",
        "excused",
        "instant",
        "lateness",
        "points",
        "settings",
        "slow_callback_duration",
        "steps",
        "taken",
        "tasks",
        "victims",
        "went_on",
        "world",
    }
)


def state_of(loop: Any, frame: FrameType | None) -> int | None:
    """The state of `loop` when it asks, from `frame`; None if that cannot be told."""
    try:
        asked = _asked(loop, frame)
        if loop._baton is not None and loop._baton.workers:
            raise Unknown("threads, whose stacks are their own")
        graph = Graph(loop, loop._now)
        graph.say(asked, loop._now, round(loop.lateness, 9))
        graph.say(loop.hindsight())
        graph.write(list(loop._ready), loop.timers())
        for channel in sorted(loop.world.waiting, key=lambda c: _place(loop, c)):
            graph.write(channel)
        _write_evidence(graph, loop)
        for name, value in sorted(vars(loop).items()):
            if name not in _LEFT_OUT:
                graph.write(name, value)
        _write_the_rest(graph, loop)
    except Exception:  # Unknown, or an object of the program's that does not bear to be looked at
        return None
    return graph.digest()


def _asked(loop: Any, frame: FrameType | None) -> tuple[Any, ...]:
    """Where in the loop's own code the choice is asked. Unknown if code of the program's is on the
    way: it would go on from the middle of a step."""
    place: list[Any] = []
    while frame is not None and frame.f_code is not _TOP:
        names = _ASKING.get(frame.f_code)
        here = frame.f_locals
        if names is None or here["self"] is not loop:
            raise Unknown("asked in the middle of a step")
        place += (frame.f_code.co_name, frame.f_lasti, *(here.get(name) for name in names))
        frame = frame.f_back
    return tuple(place)


def _place(loop: Any, channel: Channel) -> tuple[Any, ...]:
    """A channel's place in the text. Any would do that is the same for the same situation."""
    owner = loop.tasks.index(channel.owner) if channel.owner in loop.tasks else -1
    first = channel.queue[0]
    return channel.name, owner, max(first.at, loop._now), first.label, first.order


def _write_evidence(graph: Graph, loop: Any) -> None:
    """What the verdict will be made of."""
    graph.say(hash(random.getstate()[1]))
    graph.say([cancel.task for cancel in loop.accepted], loop.victims)
    graph.say(sorted(loop._struck.values()), sorted(loop.went_on), repr(loop.excused))


def _write_the_rest(graph: Graph, loop: Any) -> None:
    """The tasks that nothing leads to, if something is still to come of them."""
    for task in loop.tasks:
        if not graph.met(task) and (not task.done() or task._log_traceback):
            graph.say("alone")
            graph.write(task)
    graph.say(
        sorted(
            f"{generator.ag_code.co_qualname} {generator.ag_frame.f_lasti}"
            for generator in loop._asyncgens
            if generator.ag_frame is not None
        )
    )
