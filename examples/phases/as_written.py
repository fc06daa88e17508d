"""The report's code against masked errors, verbatim: a tracker, an analysis, a verification.

Only `is_cleanup_related` is added: the report calls it and does not define it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

__all__ = ["ResourceTracker", "analyze_taskgroup_error", "verify_cleanup_completion"]

logger = logging.getLogger(__name__)


class ResourceTracker:
    """Tracks what is to be cleaned up."""

    def __init__(self) -> None:
        self.active_resources: set[Any] = set()

    async def track_resource(self, resource: Any) -> AsyncGenerator[Any, None]:
        """Track a resource while it is in use."""
        self.active_resources.add(resource)
        try:
            yield resource
        finally:
            await asyncio.shield(resource.cleanup())
            self.active_resources.discard(resource)

    async def cleanup_all(self) -> None:
        """Force cleanup of any remaining resources."""
        cleanup_tasks = [asyncio.shield(resource.cleanup()) for resource in self.active_resources]
        await asyncio.gather(*cleanup_tasks, return_exceptions=True)


def analyze_taskgroup_error(e: BaseExceptionGroup[Any]) -> dict[str, Any]:
    """Analyze TaskGroup errors without masking them."""
    cleanup_errors: list[BaseException] = []
    operational_errors: list[BaseException] = []

    for sub_exception in e.exceptions:
        if is_cleanup_related(sub_exception):
            cleanup_errors.append(sub_exception)
        else:
            operational_errors.append(sub_exception)

    return {
        "has_operational_errors": len(operational_errors) > 0,
        "operational_errors": operational_errors,
        "cleanup_errors": cleanup_errors,
        "can_continue": len(operational_errors) == 0,
    }


def is_cleanup_related(e: BaseException) -> bool:
    """Guess from the type and the text of the error: nothing else is known after it was raised."""
    words = ("taskgroup", "cleanup", "cancelled", "cancel_scope")
    return isinstance(e, (GeneratorExit, asyncio.CancelledError)) or any(
        word in str(e).lower() for word in words
    )


async def verify_cleanup_completion(resource_tracker: Any) -> bool:
    """Verify that cleanup actually succeeded."""
    remaining = resource_tracker.get_active_resources()
    if remaining:
        # Log specific resources that failed to clean up
        for resource in remaining:
            logger.warning(f"Resource cleanup incomplete: {resource}")
        return False
    return True
