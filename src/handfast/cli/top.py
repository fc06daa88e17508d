"""`handfast top PID`: a process on a live screen; without a terminal, one table."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from handfast._missing_extra import install_line
from handfast._watch.views.table import table
from handfast.cli.usage import out, usage_error
from handfast.cli.watched import add_process, connected, parser_for, width
from handfast.watch import Client, WatchError


def main(arguments: Sequence[str]) -> int:
    """Show a process live: which lines create its tasks, what grows, and where they wait.

    Without a terminal it prints one table and ends.
    """
    parser = parser_for("top", main.__doc__)
    add_process(parser)
    options = parser.parse_args(arguments)
    with connected(options.process) as client:
        try:
            if _is_terminal():
                return _show(client)
            out(table(client.summary(), width()))
        except WatchError as error:
            usage_error(str(error))
    return 0


def _is_terminal() -> bool:
    """Whether a live screen can be drawn."""
    streams = (sys.stdin, sys.stdout)
    return os.environ.get("TERM") != "dumb" and all(
        each is not None and each.isatty() for each in streams
    )


def _show(client: Client) -> int:
    try:
        from handfast._watch.views.screen import show
    except ModuleNotFoundError as error:
        # Any other missing module is a bug in handfast, and is raised.
        if (error.name or "").partition(".")[0] not in {"textual", "rich"}:
            raise
        usage_error(
            f"the live screen needs textual: {install_line('watch')} "
            "(`handfast top | cat` prints one table without it)"
        )
    return show(client)
