"""The rules, one file each. Every `hf*.py` in this folder has a `RULE`: there is no list to edit."""

from __future__ import annotations

import os
from fnmatch import filter as matching
from importlib import import_module

from handfast._check.rules.rule import Rule

__all__ = ["RULES"]


def _load() -> tuple[Rule, ...]:
    files = matching(os.listdir(os.path.dirname(__file__)), "hf*.py")
    rules: list[Rule] = [import_module(f"{__name__}.{file[:-3]}").RULE for file in files]
    return tuple(sorted(rules, key=lambda rule: rule.code))


RULES = _load()
"""Every rule, sorted by code."""
