"""Containers that keep finished tasks: the dict that grows. On request, since it walks the heap.

A container is listed if an attribute, a global name or another such container holds it. One in a
local variable is gone when the function returns.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Collection, Iterator
from typing import Any

from handfast._census import creation_log
from handfast._census.event_loops import every_task
from handfast._census.kind import Kind
from handfast._census.live_object import LiveObject
from handfast._census.task_containers import CONTAINERS, done_tasks_in, names_of, referrers

_FEW = 2


def containers(loop: AbstractEventLoop | None = None) -> Iterator[LiveObject]:
    """Each container that keeps two finished tasks or more, of one loop or of all."""
    found = _keeping(loop)
    names = names_of(found)
    for container in found:
        if id(container) in names:
            yield _live_container(container, names[id(container)])


def _live_container(container: Collection[Any], held_as: str) -> LiveObject:
    done = done_tasks_in(container)
    newest = done[-1]
    creation = creation_log.creation_of(newest)
    # A copy: the task's own leak may have been reported, this one not.
    creation = creation and creation.for_owner(creation.owner)
    return LiveObject(
        check="retained",
        code="HF131",
        key=("retained", id(container)),
        what=f"{type(container).__name__} with {len(done)} done tasks, {held_as}",
        ended=lambda: len(done_tasks_in(container)) < _FEW,
        creation=creation,
        loop=newest.get_loop(),
        target=container,
        size=len(done),
    )


def _keeping(loop: AbstractEventLoop | None) -> list[Any]:
    done = [task for task in every_task(loop) if task.done()]
    if len(done) < _FEW:
        return []
    wanted = {id(task): task for task in done}
    return [
        referrer
        for referrer in referrers(wanted)
        if isinstance(referrer, CONTAINERS)
        and referrer is not done
        and referrer is not wanted
        and sum(id(task) in wanted for task in done_tasks_in(referrer)) >= _FEW
    ]


KIND = Kind("retained", ("HF131",), containers, on_request=True, slow=True)
