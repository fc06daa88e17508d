"""Child processes that follow a script, for programs under `handfast.explore`.

`child(command, *steps)` defines what happens when the program starts `command`: no process is
started, and each step takes place in virtual time.
"""

from __future__ import annotations

from handfast._explore.simulation.processes.script import (
    Closes,
    Dies,
    Errs,
    Exits,
    Fails,
    Forks,
    Hears,
    HearsAll,
    Ignores,
    On,
    Says,
    Waits,
    child,
)
from handfast._public_names import publish

__all__ = [
    "Closes",
    "Dies",
    "Errs",
    "Exits",
    "Fails",
    "Forks",
    "Hears",
    "HearsAll",
    "Ignores",
    "On",
    "Says",
    "Waits",
    "child",
]

publish(__name__, [globals()[name] for name in __all__])
