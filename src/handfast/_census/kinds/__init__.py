"""The kinds of live objects, one file each. Each file defines a `KIND`; there is no list to edit."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from handfast._census.kind import Kind


def _load() -> dict[str, Kind]:
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    kinds: list[Kind] = [module.KIND for module in modules]
    # Those on request last; otherwise in the order of the catalogue: tasks first.
    kinds.sort(key=lambda kind: (kind.on_request, kind.codes))
    return {kind.name: kind for kind in kinds}


KINDS = _load()
"""All kinds by name."""
