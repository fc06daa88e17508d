"""How findings are shown: one file for each form. None of them decides anything."""

from __future__ import annotations

__all__ = ["FORMATS"]

FORMATS = ("text", "json", "sarif", "github")
