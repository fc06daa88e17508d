"""The report's `ResourceTracker` and `verify_cleanup_completion`, on a scope: they keep their word.

Each resource is entered and left in an owner task, once. What is left in the end is not looked up
in a set: the owner has waited for it, and says by name who did not come.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import holdfast

__all__ = ["ResourceTracker", "verify_cleanup_completion"]

T = TypeVar("T")

logger = logging.getLogger(__name__)


class ResourceTracker:
    """Knows what is open, and sees to it that each is closed.

    >>> async def main():
    ...     tracker = ResourceTracker()
    ...     async with tracker.track_resource(holdfast.Scope("session")):
    ...         print(tracker.get_active_resources())
    ...     print(tracker.get_active_resources(), await verify_cleanup_completion(tracker))
    >>> holdfast.run(main)
    ('Scope',)
    () True
    """

    def __init__(self, deadline: float = 10.0) -> None:
        self._scope = holdfast.Scope("resources", on_failure="report", deadline=deadline)
        self._deadline = deadline
        self.active_resources: list[str] = []

    @asynccontextmanager
    async def track_resource(self, resource: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
        """Hold a resource for this block. Leaving it waits until the resource is gone."""
        name = type(resource).__qualname__
        value = await self._scope.hold(resource, name=name, deadline=self._deadline)
        self.active_resources.append(name)
        try:
            yield value
        finally:
            self.active_resources.remove(name)
            await self._scope.release(value)

    def get_active_resources(self) -> tuple[str, ...]:
        """What is open, by name."""
        return tuple(self.active_resources)

    async def cleanup_all(self) -> holdfast.CloseReport:
        """Close whatever is still open, and say how that went."""
        return await self._scope.close()


async def verify_cleanup_completion(resource_tracker: ResourceTracker) -> bool:
    """Whether all has been cleaned up; what has not is logged: what, where from, where it stands."""
    report = await resource_tracker.cleanup_all()
    for left in (*report.stragglers, *report.cleanup_errors):
        logger.warning("Resource cleanup incomplete: %s", left)
    return report.clean
