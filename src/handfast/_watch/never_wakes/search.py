"""`find_never_waking`: a search backwards from waiting tasks for something that can wake them.

A task wakes when the future that it awaits is completed. What completes it needs a reference to
it. So the search goes backwards, from the future to what refers to it, to what refers to that, and
so on, until it meets something that is at work: a running frame or C code (which shows as a
reference that the heap does not explain), a module, a loop, a timer, a task that is about to run.
Then the task can wake. If the search ends without one, nothing alive can complete the future.

A waiting task is no way out by itself: what its coroutine holds matters only if the task wakes,
so the search goes on with what that task waits for. Two tasks that await each other are found so.

A wrong report is worse than a missing one. Whatever is not understood counts as alive. A result is
confirmed while no other thread can run and change the heap: each reference to what was found must
be from what was found, or from a holder that is of no use.
"""

from __future__ import annotations

import random
import sys
import time
from asyncio import Task
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from handfast._watch.never_wakes.alone import alone
from handfast._watch.never_wakes.cancelling import with_canceller
from handfast._watch.never_wakes.heap import AT_ONCE, Heap
from handfast._watch.never_wakes.holders import (
    is_at_work,
    is_pending_task,
    registries,
    that_matter,
    waits_for,
    way_to,
    weak_holders,
)
from handfast._watch.never_wakes.parked import is_parked

Group = tuple[Hashable, Task[Any], int]
"""A key, one of the tasks, and how many there are that were created and wait at the same lines."""

MOST_GROUPS = 50
# A walk through the heap takes as long for one object as for several, so the first few searches
# show how many fit into the budget.
_AT_FIRST = 3
_IN_ONE_SEARCH = 10
# The search for timers has so many times the budget. It is only needed if something was found.
_FOR_CANCELS = 3
# What has so many holders, directly or not, is not lost.
_MOST_OBJECTS = 5000


@dataclass(frozen=True, slots=True)
class NeverWaking:
    """The groups whose tasks nothing alive can wake."""

    dead: list[Hashable] = field(default_factory=list)
    """The keys of those groups."""
    not_checked: list[str] = field(default_factory=list)
    """What could not be looked at, a sentence each."""


def find_never_waking(groups: Iterable[Group], budget_seconds: float = 0.1) -> NeverWaking:
    """The groups whose tasks wait for something that nothing alive can complete.

    Give only tasks that have not moved for a while, such as a minute. Call it from a thread of its
    own. If the budget does not suffice, some groups are not checked; they are the first next time.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return NeverWaking(
            not_checked=["which tasks can never wake is not known on a free-threaded Python"]
        )
    waiting = _longest_unchecked_first(list(groups))
    left_out = waiting[MOST_GROUPS:]
    del waiting[MOST_GROUPS:]
    suspects: list[tuple[Group, Search]] = []
    out_of_time = _clock(budget_seconds)
    size = _AT_FIRST
    while waiting and not out_of_time():
        some = waiting[:size]
        del waiting[:size]
        quick = _clock(budget_seconds / 4)
        found, unknown = _search(some, out_of_time)
        suspects += found
        left_out += unknown
        if not quick():
            size = _IN_ONE_SEARCH
    dead, unknown = _confirmed(suspects, budget_seconds)
    left_out += waiting + unknown
    count = sum(count for _, _, count in left_out)
    sentences = [f"whether {count} waiting tasks can wake was not checked: it takes too long"]
    return NeverWaking([key for key, _, _ in dead], sentences if left_out else [])


def _clock(seconds: float) -> Callable[[], bool]:
    """Whether this thread has used so much CPU time, which it has while it holds up the others."""
    end = time.thread_time() + seconds
    return lambda: time.thread_time() > end


def _search(
    groups: list[Group], out_of_time: Callable[[], bool]
) -> tuple[list[tuple[Group, Search]], list[Group]]:
    """The groups that nothing can wake, and those of which it is not known."""
    search = Search([task for _, task, _ in groups], out_of_time)
    search.run()
    wakes = [search.can_wake(task) for _, task, _ in groups]
    for group, known in zip(groups, wakes, strict=True):
        if known is not None:
            _note_checked(group[0])
    suspects = [(group, search) for group, w in zip(groups, wakes, strict=True) if w is False]
    return suspects, [group for group, w in zip(groups, wakes, strict=True) if w is None]


def _confirmed(
    suspects: list[tuple[Group, Search]], budget_seconds: float
) -> tuple[list[Group], list[Group]]:
    """Those groups that wait for no cancel either, and those of which it is not known."""
    searches = list(dict.fromkeys(search for _, search in suspects))
    waiting = [task for search in searches for task in search.waiting() if not is_parked(task)]
    cancelled = with_canceller(waiting, _clock(_FOR_CANCELS * budget_seconds))
    if cancelled is None:
        return [], [group for group, _ in suspects]
    lost = {id(task) for task in waiting} - {id(task) for task in cancelled}
    for search in searches:
        search.mark_alive([task for task in search.waiting() if id(task) not in lost])
    with alone(budget_seconds):
        return [group for group, search in suspects if search.is_still_dead(group[1])], []


# When each group was last checked, by key: the order of the dict.
_checked: dict[Hashable, None] = {}
_MOST_KEYS = 4096


def _note_checked(key: Hashable) -> None:
    _checked.pop(key, None)
    _checked[key] = None
    if len(_checked) > _MOST_KEYS:
        del _checked[next(iter(_checked))]


def _longest_unchecked_first(groups: list[Group]) -> list[Group]:
    order = {key: number for number, key in enumerate(_checked)}
    random.shuffle(groups)  # so that one that takes too long does not always come first
    return sorted(groups, key=lambda group: order.get(group[0], -1))


class Search:
    """A search from some tasks backwards, along the references."""

    def __init__(self, tasks: list[Task[Any]], out_of_time: Callable[[], bool]) -> None:
        self._heap = Heap()
        self._starts = [self._heap.number(task) for task in tasks]
        self._registries = registries(tasks)
        self._out_of_time = out_of_time
        # By number: what holds an object. An object that is not in it was not looked at yet.
        self._holders: dict[int, list[int]] = {}
        # The holders that are of no use.
        self._useless: dict[int, set[int]] = {}
        self._alive: set[int] = set()
        self._known = False

    def can_wake(self, task: Task[Any]) -> bool | None:
        """Whether a task can wake; None if that is not known."""
        if self._heap.number(task) in self._awake():
            return True
        return False if self._known else None

    def run(self) -> None:
        """Search until each task is known to be alive, or has no holder that was not seen."""
        seeds = list(dict.fromkeys(seed for each in self._starts for seed in self._seeds(each)))
        for start in range(0, len(seeds), AT_ONCE):
            if not self._out_of_time():
                self._walk(seeds[start : start + AT_ONCE])
        while open_ends := self._open_ends():
            if self._out_of_time() or len(self._heap.objects) > _MOST_OBJECTS:
                return
            walked = [number for number in open_ends if not self._look_at(number)]
            if walked:
                self._walk(walked[:AT_ONCE])
        self._known = True

    def waiting(self) -> list[Task[Any]]:
        """The tasks that nothing completes, those in between among them."""
        found = [self._heap.objects[number] for number in self._reached(self._starts)]
        return [each for each in found if is_pending_task(each)]

    def mark_alive(self, tasks: list[Task[Any]]) -> None:
        """Note that these tasks will be cancelled, or wait on purpose."""
        self._alive.update(map(self._heap.number, tasks))

    def _seeds(self, start: int) -> list[int]:
        """What a task's own coroutine has between itself and the future.

        Whatever holds that is found by the same walk, and not one after the other.
        """
        task = self._heap.objects[start]
        future = waits_for(task)
        if future is None or is_pending_task(future):
            return []
        between = way_to(Task.get_coro(task), future)
        return [self._heap.number(each) for each in between if not is_at_work(each)]

    def _look_at(self, number: int) -> bool:
        """Deal with an object that need not be searched for in the heap."""
        thing = self._heap.objects[number]
        if is_at_work(thing):
            self._alive.add(number)
        elif is_pending_task(thing):
            future = waits_for(thing)
            if future is None:
                self._alive.add(number)
            else:
                self._holders[number] = [self._heap.number(future)]
        else:
            return False
        self._holders.setdefault(number, [])
        return True

    def _walk(self, numbers: list[int]) -> None:
        found, unexplained = self._heap.walk(numbers)
        self._alive |= unexplained
        for number, holders in found.items():
            self._holders[number] = self._that_matter(number, holders)

    def _that_matter(self, number: int, holders: list[int]) -> list[int]:
        held = self._heap.objects[number]
        matter = {
            self._heap.number(each)
            for each in that_matter([self._heap.objects[each] for each in holders], held)
            if id(each) not in self._registries
        }
        self._useless[number] = set(holders) - matter
        return [*matter, *map(self._heap.number, weak_holders(held))]

    def is_still_dead(self, task: Task[Any]) -> bool:
        """Whether all that the search has found from a task is as it was, and nothing is new."""
        if self.can_wake(task):
            return False
        found = self._reached([self._heap.number(task)])
        things: dict[int, set[int]] = {}
        thing: Any = None
        for number in found:
            thing = self._heap.objects[number]
            known = self._holders[number]
            if is_pending_task(thing):
                if waits_for(thing) is not self._heap.objects[known[0]]:
                    return False
            elif any(self._heap.number(weak) not in known for weak in weak_holders(thing)):
                return False
            else:
                things[number] = {*known, *self._useless[number]}
        thing = None  # its references are counted
        return self._heap.is_closed(things)

    def _open_ends(self) -> list[int]:
        """What has to be looked at next."""
        return [each for each in self._reached(self._starts) if each not in self._holders]

    def _reached(self, starts: list[int]) -> list[int]:
        """What the search has found from those of some tasks that are not known to be alive."""
        awake = self._awake()
        pending = [number for number in starts if number not in awake]
        reached = dict.fromkeys(pending)
        while pending:
            for holder in self._holders.get(pending.pop(), ()):
                if holder not in reached:
                    reached[holder] = None
                    pending.append(holder)
        return list(reached)

    def _awake(self) -> set[int]:
        """What something that is alive holds, directly or not."""
        held_by: dict[int, list[int]] = {}
        for held, holders in self._holders.items():
            for holder in holders:
                held_by.setdefault(holder, []).append(held)
        awake = set(self._alive)
        pending = list(awake)
        while pending:
            for held in held_by.get(pending.pop(), ()):
                if held not in awake:
                    awake.add(held)
                    pending.append(held)
        return awake
