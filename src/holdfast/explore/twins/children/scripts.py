"""The scripts of one run: which program does what.

A program has to say what a child does before it starts it. A child without a script is refused,
never started for real.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable, Iterable
from typing import Any, cast

from holdfast.explore.twins.children.steps import Step

__all__ = ["Argv", "Scripts", "child", "words"]

Argv = tuple[str, ...]
Which = str | Callable[[Argv], bool]
Script = Callable[[Argv], Iterable[Step]]


def child(which: Which, *script: Step | Script) -> None:
    r"""Say, for the current run, what a child process does.

    `which` is the name of the program, without folders, or a function that is given the whole
    command line and says whether this is meant. The script is a row of steps, or one function from
    the command line to the steps. Of several that fit, the last one counts. A shell command is taken
    by its words; what the shell would make of them is not looked at.

    >>> import asyncio
    >>> from holdfast.explore.plan import Plan, Settings
    >>> from holdfast.explore.run import run
    >>> from holdfast.explore.twins.children import Exits, Says
    >>> async def program():
    ...     child("ffprobe", Says(b"00:12\n"), Exits(3))
    ...     process = await asyncio.create_subprocess_exec("ffprobe", "a.mp4", stdout=-1)
    ...     out, _ = await process.communicate()
    ...     assert (out, process.returncode) == (b"00:12\n", 3)
    >>> run(program, Plan(), Settings()).verdict is None
    True
    """
    loop: Any = asyncio.get_running_loop()
    add = getattr(loop, "script_child", None)
    if add is None:
        raise RuntimeError(
            f"child({_shown(which)}, ...) has a meaning under the explorer only: this is {loop!r}. "
            "Run the program with holdfast.explore, or start a real child here"
        )
    add(which, script)


class Scripts:
    """What was registered in this run."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: list[tuple[Which, tuple[Step | Script, ...]]] = []

    def add(self, which: Which, script: tuple[Step | Script, ...]) -> None:
        functions = [step for step in script if callable(step)]
        if functions and len(script) > 1:
            raise TypeError(
                f"child({_shown(which)}, ...) takes steps, or one function that gives them; not both"
            )
        self._known.append((which, script))

    def find(self, argv: Argv) -> tuple[Step, ...] | None:
        """The steps for this command line; None if nobody has said."""
        for which, script in reversed(self._known):
            if _fits(which, argv):
                if script and callable(script[0]):
                    return tuple(script[0](argv))
                return cast("tuple[Step, ...]", script)
        return None


def words(args: Any, *, shell: bool) -> Argv:
    """The command line as text, from what asyncio was given."""
    if not shell:
        return tuple(os.fsdecode(arg) for arg in args)
    command = os.fsdecode(args)
    try:
        return tuple(shlex.split(command)) or (command,)
    except ValueError:  # a quotation that is not closed; the shell would say so too
        return tuple(command.split())


def _fits(which: Which, argv: Argv) -> bool:
    if isinstance(which, str):
        return os.path.basename(argv[0]) == which
    return which(argv)


def _shown(which: Which) -> str:
    return repr(which) if isinstance(which, str) else getattr(which, "__qualname__", repr(which))
