"""`WatchError`: what is wrong with a watch, and what to do."""

from __future__ import annotations


class WatchError(Exception):
    """A process cannot be watched. The message says why, and what to do."""
