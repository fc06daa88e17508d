"""Scripts of child processes: the steps, `child`, and the look-up by command line.

The steps are plain data; `scripted_process` carries them out. A script without an `Exits` at its end
exits with status 0. A child without a script is refused, never started for real.
"""

from __future__ import annotations

import asyncio
import math
import os
import shlex
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

Reply = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Says:
    r"""Write to standard output. In how many pieces it arrives is a choice: whole, or cut once, after
    its first byte or before its last. `whole=True`: it always arrives in one piece.

    >>> Says(b"ready\n").data
    b'ready\n'
    """

    data: bytes
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Errs:
    """Write to standard error; as `Says`."""

    data: bytes
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Waits:
    """Wait for this many seconds of virtual time; without a number until a signal arrives.
    `Waits(0)` is a step that takes no time."""

    seconds: float = math.inf

    def __post_init__(self) -> None:
        if not self.seconds >= 0:
            raise ValueError(f"Waits takes seconds, 0 or more, not {self.seconds!r}")


@dataclass(frozen=True, slots=True)
class Hears:
    r"""Read a line from standard input, and write what `answer` returns for it.

    `lines` is the number of lines; None: all lines until the end of the input. The end of the
    input ends the step; a last line without a newline counts as a line.

    >>> Hears(bytes.upper, lines=None).answer(b"hello\n")
    b'HELLO\n'
    """

    answer: Reply | None = None
    lines: int | None = 1


@dataclass(frozen=True, slots=True)
class HearsAll:
    """Read standard input to its end, and write what `answer` returns for it."""

    answer: Reply | None = None


@dataclass(frozen=True, slots=True)
class Closes:
    """Close a pipe and continue."""

    pipe: Literal["stdin", "stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Exits:
    """Exit with this status."""

    status: int = 0


@dataclass(frozen=True, slots=True)
class Dies:
    """Die of this signal: a crash."""

    signal: int = signal.SIGSEGV


@dataclass(frozen=True, slots=True)
class Ignores:
    """Ignore a signal from here on. As the first step, it is ignored from the start."""

    signal: int = 15


@dataclass(frozen=True, slots=True, init=False)
class On:
    r"""From here on, when this signal arrives, leave the script and do these steps instead.

    >>> On(15, Says(b"bye\n"), Exits(3)).steps[1]
    Exits(status=3)
    """

    signal: int
    steps: tuple[Step, ...]

    def __init__(self, number: int, *steps: Step) -> None:
        object.__setattr__(self, "signal", number)
        object.__setattr__(self, "steps", steps)


@dataclass(frozen=True, slots=True, init=False)
class Forks:
    """Start a grandchild with its own script. It shares both output pipes, so they stay open while it
    runs, and a signal to the group reaches it; with `leaves=True` it gets a session of its own,
    where such a signal does not reach it.

    >>> Forks(Waits(2.0)).steps   # keeps the pipes open for two seconds
    (Waits(seconds=2.0),)
    """

    steps: tuple[Step, ...]
    leaves: bool

    def __init__(self, *steps: Step, leaves: bool = False) -> None:
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "leaves", leaves)


@dataclass(frozen=True, slots=True)
class Fails:
    """The program cannot be started: starting it raises this error. Must be the only step.

    >>> Fails(FileNotFoundError(2, "No such file or directory")).error.errno
    2
    """

    error: OSError


Step = Says | Errs | Waits | Hears | HearsAll | Closes | Exits | Dies | Ignores | On | Forks | Fails

Argv = tuple[str, ...]
Which = str | Callable[[Argv], bool]
Script = Callable[[Argv], Iterable[Step]]


def child(which: Which, *script: Step | Script) -> None:
    r"""Define, for the current run, what a child process does.

    `which` is the name of the program without folders, or a function that takes the command line
    and returns whether the script is for it. The script is a sequence of steps, or one function from
    the command line to the steps. If several scripts match, the last one is used. A shell command is
    split into words; shell syntax is not interpreted.

    >>> import asyncio
    >>> from handfast._explore.search.plan import Plan, Settings
    >>> from handfast._explore.search.run import run
    >>> from handfast.scripted import Exits, Says
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
            f"child({_shown(which)}, ...) works under the explorer only, and the loop is {loop!r}. "
            "Run the program with handfast.explore, or start a real child process"
        )
    add(which, script)


class Scripts:
    """The scripts of one run."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: list[tuple[Which, tuple[Step | Script, ...]]] = []

    def add(self, which: Which, script: tuple[Step | Script, ...]) -> None:
        functions = [step for step in script if callable(step)]
        if functions and len(script) > 1:
            raise TypeError(
                f"child({_shown(which)}, ...) takes steps, or one function that returns them; not both"
            )
        self._known.append((which, script))

    def find(self, argv: Argv) -> tuple[Step, ...] | None:
        """The steps for this command line; None if there is no script for it."""
        for which, script in reversed(self._known):
            if _matches(which, argv):
                if script and callable(script[0]):
                    return tuple(script[0](argv))
                return cast("tuple[Step, ...]", script)
        return None


def command_line(args: Any, *, shell: bool) -> Argv:
    """The command line as text, from the arguments of asyncio."""
    if not shell:
        return tuple(os.fsdecode(arg) for arg in args)
    command = os.fsdecode(args)
    try:
        return tuple(shlex.split(command)) or (command,)
    except ValueError:  # an unclosed quotation mark
        return tuple(command.split())


def _matches(which: Which, argv: Argv) -> bool:
    if isinstance(which, str):
        return os.path.basename(argv[0]) == which
    return which(argv)


def _shown(which: Which) -> str:
    return repr(which) if isinstance(which, str) else getattr(which, "__qualname__", repr(which))
