"""A checked command line: program, arguments, environment, directory and standard streams.

It also makes the error for a start that failed. Nothing is started here.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import TypeAlias

from handfast._origin import Origin
from handfast._runtime.errors import ProcessStartError
from handfast._runtime.process.stdio import ErrorOutput, Input, Output, check_stream

Argument: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"


class Command:
    """A command line whose parts have valid types and values."""

    __slots__ = ("argv", "cwd", "env", "origin", "stderr", "stdin", "stdout")

    def __init__(
        self,
        argv: tuple[Argument, ...],
        env: Mapping[str, str] | None,
        cwd: Argument | None,
        origin: Origin,
        streams: tuple[Input, Output, ErrorOutput] = ("pipe", "pipe", "keep"),
    ) -> None:
        if not argv:
            raise ValueError("Process() needs a program to start, and got no argument")
        self.argv = tuple(_plain(position, argument) for position, argument in enumerate(argv))
        self.env = None if env is None else _plain_env(env)
        self.cwd = None if cwd is None else os.fspath(cwd)
        self.origin = origin
        self.stdin, self.stdout, self.stderr = streams
        for name, word in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            check_stream(name, word)

    @property
    def program(self) -> str:
        return os.fsdecode(self.argv[0])

    def __str__(self) -> str:
        line = shlex.join(map(os.fsdecode, self.argv))
        if len(line) > 80:
            line = line[:77] + "..."
        return f"process `{line}` (created at {self.origin})"

    def start_error(self, error: OSError) -> ProcessStartError:
        """The error that names the program, and the directory if that is missing."""
        what = f"cannot start {self.program!r}"
        # Some loops report a missing directory as if the program were missing.
        if self.cwd is not None and not os.path.isdir(self.cwd):
            what += f", there is no directory {os.fsdecode(self.cwd)!r} to start it in"
        return ProcessStartError(
            error.errno, f"{what}: {error.strerror} (created at {self.origin})"
        )


def _plain(position: int, argument: object) -> str | bytes:
    if not isinstance(argument, str | bytes | os.PathLike):
        raise TypeError(
            f"argument {position} of the program must be a string, bytes or a path, not "
            f"{argument!r}; pass each argument by itself, as in Process('ls', '-l')"
        )
    plain: str | bytes = os.fspath(argument)
    if b"\0" in os.fsencode(plain):  # uvloop would silently truncate it there
        raise ValueError(f"argument {position} of the program contains a NUL byte: {plain!r}")
    return plain


def _plain_env(env: Mapping[str, str]) -> dict[str, str]:
    names: list[object] = [*env.keys(), *env.values()]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"env must map strings to strings, not {env!r}")
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"env cannot contain {name!r} = {value!r}")
    return dict(env)
