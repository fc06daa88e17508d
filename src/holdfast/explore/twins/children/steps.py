"""What a scripted child can do: the words of which a script is made.

Only the words are here, as plain data; `process` carries them out. A script that comes to its end
exits with status 0.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

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
    "Step",
    "Waits",
]

Answer = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Says:
    r"""Write to standard output. In how many pieces it comes is a choice: whole, or cut once, after
    its first byte or before its last. `whole=True` says that the real program writes it in one go.

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
    """Do nothing for so many seconds of virtual time; without a number for ever, until a signal
    comes. `Waits(0)` is a step of its own without a length."""

    seconds: float = math.inf

    def __post_init__(self) -> None:
        if not self.seconds >= 0:
            raise ValueError(f"Waits takes seconds, 0 or more, not {self.seconds!r}")


@dataclass(frozen=True, slots=True)
class Hears:
    r"""Read a line from standard input, and say what `answer` makes of it.

    `lines` is how many, one after the other; None means all, until the input ends. The end of the
    input ends the step; a last line without a newline is a line too.

    >>> Hears(bytes.upper, lines=None).answer(b"hello\n")
    b'HELLO\n'
    """

    answer: Answer | None = None
    lines: int | None = 1


@dataclass(frozen=True, slots=True)
class HearsAll:
    """Read standard input to its end, and say what `answer` makes of it all."""

    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class Closes:
    """Close a pipe and go on."""

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
    """From here on ignore a signal. At the beginning of a script it holds from the first moment."""

    signal: int = 15


@dataclass(frozen=True, slots=True, init=False)
class On:
    r"""From here on, when this signal comes, leave the script and do these steps instead.

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
    """Start a grandchild with a script of its own. It shares both output pipes, so they stay open
    while it lives, and it dies with its group; `leaves=True` puts it into a session of its own,
    where no signal to the group reaches it.

    >>> Forks(Waits(2.0)).steps   # holds the pipes for two seconds
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
