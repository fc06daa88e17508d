"""Who refers to an object, and whether there are references that the heap does not explain.

`gc.get_referrers` finds the tracked objects that refer to another one. What it does not find is a
reference from a running frame, from C code, from an object that the collector does not track, or
from one that `gc.freeze` has hidden. All of them add to the reference count, so they show as the
difference. In doubt a reference counts as not explained.
"""

from __future__ import annotations

import gc
import sys
import types
from typing import Any

from handfast._asyncio_internals import snapshot, task_sets

# A walk gets slower with each object that is searched for: 20 ms for one, 50 ms for 32, in a heap
# of 1.2 million objects.
AT_ONCE = 32

# Since 3.14 a suspended generator may borrow what its variables own. Its traversal shows both
# references (`_PyGC_VisitStackRef`), though only one is counted. A coroutine that awaits has none of
# these: the compiler lets no borrowed reference live through an `await`.
_MAY_BORROW = (types.AsyncGeneratorType, types.FrameType, types.GeneratorType)
_BORROWS = sys.version_info >= (3, 14)
# Until 3.11 the traversal of a Task does not stop at its callbacks, so `gc.get_referrers` does not
# find it (`TaskObj_traverse` drops what `FutureObj_traverse` returns).
_TASKS_ARE_NOT_FOUND = sys.version_info < (3, 12)
# Containers too large to count the references in it.
_LARGE = 100_000
_MOST_TASKS = 5000


class _Probe:
    """An object with no references but those of the walk itself."""


class Heap:
    """Objects by number, and walks through the heap for those that refer to them."""

    def __init__(self) -> None:
        # The only references to the objects that outlive a walk.
        self.objects: list[Any] = []
        self._numbers: dict[int, int] = {}

    def number(self, found: object) -> int:
        """The number of an object, which it gets when it is first seen."""
        number = self._numbers.get(id(found))
        if number is None:
            number = self._numbers[id(found)] = len(self.objects)
            self.objects.append(found)
        return number

    def walk(self, numbers: list[int]) -> tuple[dict[int, list[int]], set[int]]:
        """What refers to some objects, and which of them have references nobody explains."""
        probe = [_Probe()]
        # No local variable may refer to one of the objects while their references are counted.
        # A tuple, so that `*targets` makes no other one, which would be found too.
        targets = (*(self.objects[number] for number in numbers), *probe)
        found = gc.get_referrers(*targets)
        if _TASKS_ARE_NOT_FOUND:
            found += _tasks_that_refer_to(targets, found)
        counts = [*map(sys.getrefcount, targets)]
        own = {id(self.objects), id(targets), id(found), id(probe)}
        holders, explained = self._explain(found, targets, own)
        overhead = counts[-1] - explained[id(probe[0])]
        unexplained = {
            number
            for number, count in zip(numbers, counts, strict=False)
            if count - overhead > explained[id(self.objects[number])]
        }
        return {number: holders[id(self.objects[number])] for number in numbers}, unexplained

    def is_closed(self, holders: dict[int, set[int]]) -> bool:
        """Whether all references to some objects, the keys, are from the holders given for each.

        This does not walk the heap, so it is quick.
        """
        probe = [_Probe()]
        targets = (*(self.objects[number] for number in holders), *probe)
        counts = [*map(sys.getrefcount, targets)]
        numbers = {id(self.objects[number]): number for number in holders}
        explained = dict.fromkeys(holders, 0)
        for holder in set().union(*holders.values()):
            seen: set[int] = set()
            for each in map(id, gc.get_referents(self.objects[holder])):
                held = numbers.get(each)
                if held is not None and holder in holders[held]:
                    explained[held] += held not in seen or not _may_borrow(self.objects[holder])
                    seen.add(held)
        # As many have the probe: one in a list, one in `targets`.
        overhead = counts.pop()
        return all(
            count - overhead <= explained[number]
            for count, number in zip(counts, holders, strict=True)
        )

    def _explain(
        self, found: list[Any], targets: tuple[Any, ...], own: set[int]
    ) -> tuple[dict[int, list[int]], dict[int, int]]:
        """For each target by id: the numbers of its holders, and how many references they have."""
        holders: dict[int, list[int]] = {id(target): [] for target in targets}
        explained = dict.fromkeys(holders, 0)
        for referrer in found:
            # `found` is itself a reference to what is a target and refers to another one.
            if id(referrer) in explained:
                explained[id(referrer)] += 1
        for referrer in found:
            counted = [1] if _is_large(referrer) else gc.get_referents(referrer)
            seen: set[int] = set()
            for each in map(id, counted):
                if each in explained and not (each in seen and _may_borrow(referrer)):
                    explained[each] += 1
                    seen.add(each)
            if id(referrer) not in own:
                number = self.number(referrer)
                for each in seen:
                    holders[each].append(number)
        return holders, explained


def _tasks_that_refer_to(targets: tuple[Any, ...], found: list[Any]) -> list[Any]:
    tasks = [task for each in task_sets() for task in snapshot(each)]
    if len(tasks) > _MOST_TASKS:
        return []
    wanted, known = set(map(id, targets)), set(map(id, found))
    return [
        task
        for task in tasks
        if id(task) not in known and not wanted.isdisjoint(map(id, gc.get_referents(task)))
    ]


def _is_large(container: Any) -> bool:
    """Counting in it takes too long. What it holds has a reference that is not explained."""
    kind = type(container)
    if issubclass(kind, types.ModuleType):
        return True  # gc.get_referents(_asyncio) does not end on 3.12.1 (CPython #122695)
    # By the methods of the built-in classes: those of a subclass may run any code.
    return any(
        issubclass(kind, each) and each.__len__(container) > _LARGE
        for each in (dict, list, set, tuple)
    )


def _may_borrow(referrer: Any) -> bool:
    return _BORROWS and issubclass(type(referrer), _MAY_BORROW)
