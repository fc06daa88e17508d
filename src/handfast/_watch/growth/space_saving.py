"""`SpaceSaving`: the heaviest keys of a stream, in bounded memory.

The algorithm of Metwally, Agrawal and El Abbadi (2005): a new key takes the place of the lightest
one and inherits its weight. A key whose true weight is more than `1 / capacity` of the total is
therefore always present, and its weight is overstated by at most what it inherited.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from itertools import count
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class SpaceSaving(Generic[Key]):
    """Weights of at most `capacity` keys.

    >>> heaviest = SpaceSaving(2)
    >>> [heaviest.add(key) for key in "aab"]
    [None, None, None]
    >>> heaviest.add("c")  # takes the place of the lightest
    'b'
    >>> sorted(heaviest), heaviest.weight("c"), heaviest.overstated("c")
    (['a', 'c'], 2, 1)
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}")
        self._capacity = capacity
        self._weights: dict[Key, int] = {}
        self._inherited: dict[Key, int] = {}
        # An entry is out of date if its weight is no longer that of its key. Keys need no order,
        # so a number decides between equal weights.
        self._heap: list[tuple[int, int, Key]] = []
        self._numbers = count()

    def __contains__(self, key: Key) -> bool:
        return key in self._weights

    def __iter__(self) -> Iterator[Key]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def weight(self, key: Key) -> int:
        """The weight of a key, which may be overstated."""
        return self._weights[key]

    def overstated(self, key: Key) -> int:
        """By how much the weight of a key may be too high."""
        return self._inherited[key]

    def add(self, key: Key, weight: int = 1) -> Key | None:
        """Add to the weight of a key; returns the key that was dropped for it."""
        dropped = None
        if key not in self._weights:
            inherited = 0
            if len(self._weights) >= self._capacity:
                dropped = self._lightest()
                inherited = self._weights.pop(dropped)
                del self._inherited[dropped]
            self._weights[key] = self._inherited[key] = inherited
        self._weights[key] += weight
        self._push(key)
        return dropped

    def remove(self, key: Key) -> None:
        """Forget a key, and so make place for another one that inherits nothing."""
        del self._weights[key], self._inherited[key]

    def _push(self, key: Key) -> None:
        if len(self._heap) >= 4 * self._capacity:
            self._heap = [(weight, next(self._numbers), k) for k, weight in self._weights.items()]
            heapq.heapify(self._heap)
        else:
            heapq.heappush(self._heap, (self._weights[key], next(self._numbers), key))

    def _lightest(self) -> Key:
        while True:
            weight, _, key = heapq.heappop(self._heap)
            if self._weights.get(key) == weight:
                return key
