"""reactivex: an operator that maps each item to an async function on a scope.

mapping     the operator and its subscriptions
room        back-pressure: how many items may be under way
delivery    outcomes leave one at a time, in order where that is asked for
"""

from __future__ import annotations

from holdfast.bridges.absent import absent

try:
    import reactivex  # noqa: F401
except ModuleNotFoundError as error:
    raise absent("reactivex", "holdfast[rx]") from error

from holdfast.bridges.outcome import Outcome
from holdfast.bridges.reactivex.mapping import MapAsync, map_async
from holdfast.bridges.reactivex.room import Overflow, WhenFull

__all__ = ["MapAsync", "Outcome", "Overflow", "WhenFull", "map_async"]
