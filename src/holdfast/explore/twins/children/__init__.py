"""Scripted child processes: what a program starts on the explored loop, played in memory.

- `steps`      the words of a script: Says, Waits, Hears, Exits, Forks, ...
- `scripts`    `child`, which says what a program does, and the lookup by command line
- `process`    goes through a script; `pending` is what it did and nobody has seen yet
- `pipes`      bytes in order, limited room, EOF, broken pipes, as a kernel keeps them
- `table`      invented pids, groups, signals, zombies; `reach` leads `os.kill` and its like there
- `ends`, `popen`   asyncio's own transports on top of these
- `launching`, `mixin`   the loop's side; `left_over` what is still there at the end

Exit and EOF are two events on two ways, as with a real child. No real process is ever started.
"""

from __future__ import annotations

from holdfast.explore.twins.children.mixin import Children
from holdfast.explore.twins.children.scripts import child
from holdfast.explore.twins.children.steps import (
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
    Step,
    Waits,
)

__all__ = [
    "Children",
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
    "Step",
    "Waits",
    "child",
]
