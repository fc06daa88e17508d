"""As it should be: the stream lives in an owner task, sessions have an owner, errors come out."""

from __future__ import annotations

import holdfast
from holdfast.casebook.phases.sdk import Message, Sdk
from holdfast.casebook.phases.search import Search
from holdfast.casebook.phases.tracking import ResourceTracker

__all__ = ["PhaseOrchestrator"]


class PhaseOrchestrator:
    """Runs phases, each over a stream of the SDK; a phase may search."""

    def __init__(self, sdk: Sdk, search: Search) -> None:
        self._sdk = sdk
        self._search = search
        self.resource_tracker = ResourceTracker()

    async def run_phase(self, prompt: str) -> Message:
        """One phase, up to its result."""
        async with holdfast.stream(self._sdk.query(prompt)) as messages:
            async for message in messages:
                if message["type"] == "web_search":
                    await self.web_search_operation(message["query"])
                elif message["type"] == "result":
                    return message
        raise LookupError("the stream has ended without a result")

    async def web_search_operation(self, query: str) -> str:
        """Ask the search engine, in a session of its own."""
        async with self.resource_tracker.track_resource(self._search()) as session:
            return await session.find(query)

    async def close(self) -> holdfast.CloseReport:
        """The program stops: what is left is named."""
        return await self.resource_tracker.cleanup_all()
