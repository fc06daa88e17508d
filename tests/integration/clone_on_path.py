"""Put the clone on `sys.path`, for `examples`: `python -m robot` does that, `robot` does not."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["CLONE"]

CLONE = str(Path(__file__).parents[2])

if CLONE not in sys.path:
    sys.path.insert(0, CLONE)
