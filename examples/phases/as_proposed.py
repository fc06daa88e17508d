"""With the report's fix: clean-up is shielded, resources are tracked, errors are analysed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from examples.phases.as_written import ResourceTracker, analyze_taskgroup_error
from examples.phases.sdk import Message, Sdk
from examples.phases.search import Search

__all__ = ["PhaseOrchestrator"]


class PhaseOrchestrator:
    """Runs phases, each over a stream of the SDK; a phase may search."""

    def __init__(self, sdk: Sdk, search: Search) -> None:
        self._sdk = sdk
        self._search = search
        self.resource_tracker = ResourceTracker()

    async def run_phase(self, prompt: str) -> Message:
        """Run one phase up to its result."""
        context = None
        try:
            context = _Conversation(self._sdk.query(prompt))
            self.resource_tracker.active_resources.add(context)
            return await self._do_work(context)
        finally:
            if context:
                # Shield cleanup from cancellation
                await asyncio.shield(context.cleanup())
                self.resource_tracker.active_resources.discard(context)

    async def _do_work(self, context: _Conversation) -> Message:
        async for message in context.stream:
            if message["type"] == "web_search":
                await self.web_search_operation(message["query"])
            elif message["type"] == "result":
                return message
        raise LookupError("the stream ended without a result")

    async def web_search_operation(self, query: str) -> str:
        """Query the search engine in a new session."""
        async with self._search() as session:
            return await session.find(query)

    async def close(self) -> None:
        """Close the orchestrator."""
        await self.resource_tracker.cleanup_all()


class _Conversation:
    def __init__(self, stream: AsyncGenerator[Message, None]) -> None:
        self.stream = stream

    async def cleanup(self) -> None:
        try:
            await self.stream.aclose()
        except BaseExceptionGroup as e:
            if not analyze_taskgroup_error(e)["can_continue"]:
                raise
