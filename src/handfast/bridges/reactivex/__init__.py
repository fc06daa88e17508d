"""reactivex: an operator that maps each item to an async function on a scope.

_map_async      the operator, and waiting for its subscriptions
_subscription   one subscription: source, scope, observer
_backpressure   the limit of items in flight, and what happens when it is reached
_delivery       calls the observer with one outcome at a time
"""

from __future__ import annotations

from handfast._missing_extra import missing_for_bridge

try:
    import reactivex  # noqa: F401
except ModuleNotFoundError as error:
    raise missing_for_bridge("reactivex", "rx") from error

from handfast._outcome import Outcome
from handfast._public_names import publish
from handfast.bridges.reactivex._backpressure import Overflow, WhenFull
from handfast.bridges.reactivex._map_async import MapAsync, map_async

__all__ = ["MapAsync", "Outcome", "Overflow", "WhenFull", "map_async"]
publish(__name__, (MapAsync, Overflow, map_async))
