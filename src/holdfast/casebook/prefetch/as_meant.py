"""As the report means it: the bundle is no task but a future, and stands in the set as it is.

With that the line does not raise, and the rest of the remedy can be looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.casebook.prefetch import as_proposed

__all__ = ["Automator"]


class Automator(as_proposed.Automator):
    """Copies channels into a sheet, and fetches meanwhile what comes next."""

    def _prefetch(self, upcoming: Sequence[str]) -> None:
        prefetch_tasks = [self._rows(channel) for channel in upcoming]
        task = asyncio.gather(*prefetch_tasks, return_exceptions=True)
        self.background_tasks.add(task)
        task.add_done_callback(self.background_tasks.discard)
