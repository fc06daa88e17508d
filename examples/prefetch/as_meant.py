"""The report's fix as it was meant: the future that `gather` returns is stored as it is.

So the line does not raise, and the rest of the fix can be examined.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from examples.prefetch import as_proposed

__all__ = ["Automator"]


class Automator(as_proposed.Automator):
    """Copies channels into a sheet and prefetches the next ones meanwhile."""

    def _prefetch(self, upcoming: Sequence[str]) -> None:
        prefetch_tasks = [self._rows(channel) for channel in upcoming]
        task = asyncio.gather(*prefetch_tasks, return_exceptions=True)
        self.background_tasks.add(task)
        task.add_done_callback(self.background_tasks.discard)
