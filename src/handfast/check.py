"""Find lifetime bugs by reading source code; nothing is imported or run.

>>> from handfast.check import check
>>> check(["no_such_folder"])
Traceback (most recent call last):
handfast._check.engine.discovery.NoSuchPath: there is no file or folder 'no_such_folder'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from handfast._public_names import load_on_use

if TYPE_CHECKING:
    from handfast._check.engine.engine import check
    from handfast._check.finding import Confidence, Finding
    from handfast._check.report import Report
    from handfast.catalogue import Harm

__all__ = ["Confidence", "Finding", "Harm", "Report", "check"]

# A run with a warm cache needs few modules.
__getattr__ = load_on_use(
    __name__,
    {
        "Confidence": "handfast._check.finding",
        "Finding": "handfast._check.finding",
        "Harm": "handfast.catalogue",
        "Report": "handfast._check.report",
        "check": "handfast._check.engine.engine",
    },
)
