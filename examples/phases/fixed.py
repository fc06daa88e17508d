"""Fixed: the stream runs in an owner task, sessions have an owner, and errors are raised."""

from __future__ import annotations

import handfast
from examples.phases.sdk import Message, Sdk
from examples.phases.search import Search
from examples.phases.tracking import ResourceTracker

__all__ = ["PhaseOrchestrator"]


class PhaseOrchestrator:
    """Runs phases, each over a stream of the SDK; a phase may search."""

    def __init__(self, sdk: Sdk, search: Search) -> None:
        self._sdk = sdk
        self._search = search
        self.resource_tracker = ResourceTracker()

    async def run_phase(self, prompt: str) -> Message:
        """Run one phase up to its result."""
        async with handfast.stream(self._sdk.query(prompt)) as messages:
            async for message in messages:
                if message["type"] == "web_search":
                    await self.web_search_operation(message["query"])
                elif message["type"] == "result":
                    return message
        raise LookupError("the stream ended without a result")

    async def web_search_operation(self, query: str) -> str:
        """Query the search engine in a new session."""
        async with self.resource_tracker.track_resource(self._search()) as session:
            return await session.find(query)

    async def close(self) -> handfast.types.CloseReport:
        """Close everything; the report names what is still open."""
        return await self.resource_tracker.cleanup_all()
