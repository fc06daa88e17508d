"""Wrong use of a command: one message, exit status 2. And output that cannot be written."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def usage_error(message: str) -> NoReturn:
    """Print what is wrong with the command line, and exit with status 2."""
    note(f"handfast: {message}")
    raise SystemExit(2)


def note(message: str) -> None:
    """Print a line to standard error, which may be closed or full."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(f"{message}\n")
    except (OSError, ValueError):
        pass


def out(text: str | bytes) -> None:
    """Print to standard output; if that is impossible, exit with status 2."""
    try:
        if sys.stdout is None:
            raise OSError(9, "it is closed")
        if isinstance(text, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(text)
        else:
            # A file name or a line may have characters that the terminal's encoding does not.
            encoding = sys.stdout.encoding or "utf-8"
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()  # the reader, such as `head`, has seen enough
    except OSError as error:
        _discard_output()
        usage_error(f"standard output cannot be written: {error.strerror}")


def _discard_output() -> None:
    # At its exit, Python would flush what is left, fail again, and exit with 120.
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
