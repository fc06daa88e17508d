"""What the explorer cannot look into."""

from __future__ import annotations

__all__ = ["Unknown"]


class Unknown(Exception):
    """The state hangs on something whose inside, or size, is out of sight."""
