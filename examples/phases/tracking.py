"""The report's `ResourceTracker` and `verify_cleanup_completion`, on a scope.

Each resource is entered and left in an owner task. At the end the scope joins the resources, and its
report names each that is still open.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import handfast

__all__ = ["ResourceTracker", "verify_cleanup_completion"]

T = TypeVar("T")

logger = logging.getLogger(__name__)


class ResourceTracker:
    """Tracks open resources and closes each of them.

    >>> async def main():
    ...     tracker = ResourceTracker()
    ...     async with tracker.track_resource(handfast.Scope("session")):
    ...         print(tracker.get_active_resources())
    ...     print(tracker.get_active_resources(), await verify_cleanup_completion(tracker))
    >>> handfast.run(main)
    ('Scope',)
    () True
    """

    def __init__(self, timeout: float = 10.0) -> None:
        self._scope = handfast.Scope("resources", on_failure="report", timeout=timeout)
        self._timeout = timeout
        self.active_resources: list[str] = []

    @asynccontextmanager
    async def track_resource(self, resource: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
        """Hold a resource for this block; leaving the block closes it."""
        name = type(resource).__qualname__
        value = await self._scope.hold(resource, name=name, timeout=self._timeout)
        self.active_resources.append(name)
        try:
            yield value
        finally:
            self.active_resources.remove(name)
            await self._scope.release(value)

    def get_active_resources(self) -> tuple[str, ...]:
        """The names of the open resources."""
        return tuple(self.active_resources)

    async def cleanup_all(self) -> handfast.types.CloseReport:
        """Close the open resources and return a report."""
        return await self._scope.close()


async def verify_cleanup_completion(resource_tracker: ResourceTracker) -> bool:
    """Close everything, log each resource that could not be closed, and return whether all were."""
    report = await resource_tracker.cleanup_all()
    for left in (*report.stragglers, *report.cleanup_errors):
        logger.warning("Resource cleanup incomplete: %s", left)
    return report.clean
