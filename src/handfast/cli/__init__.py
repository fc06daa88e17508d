"""The `handfast` command. `app` assembles it; each command has a file of its own.

    app            the commands, each loaded when it is used
    attach         `handfast attach`: start the watch in a process that runs already
    audit          `handfast audit`: run all tools on a project
    check          `handfast check`: find lifetime bugs in source files
    check_options  its options
    diff           `handfast diff`: what changed between two snapshots of a process
    dump           `handfast dump`: a snapshot as an HTML page or as JSON
    explain        `handfast explain`: show a bug kind of the catalogue
    explore        `handfast explore`: run a program under many schedules
    lsp            `handfast lsp`: the language server, for editors
    ps             `handfast ps`: the processes that are watched
    rule           `handfast rule`: another name of `explain`
    snapshot       `handfast snapshot`: write what is alive in a process to a file
    stress         `handfast stress`: run a function many times and show what grows
    top            `handfast top`: a process on a live screen
    tree           `handfast tree`: its loops, scopes and tasks
    rich_pages     pages of the catalogue, with rich
    progress       the progress bar of commands that take long, and the silence around their runs
    target         find the function that `module:function` names
    watched        the process or the snapshot file that a command names
    usage          the message and the exit status for wrong use

This file imports neither rich nor typer: `--version` and the commands in `PLAIN` do without them, and
for the others it names the extra that brings them.
"""

import os
import platform
import signal
import sys
from importlib import import_module
from types import FrameType

from handfast._missing_extra import install_line

__all__ = ["PLAIN", "main", "version_line"]

_WATCH = ("attach", "diff", "dump", "ps", "snapshot", "top", "tree")
PLAIN = ("check", "explain", "rule", *_WATCH)
"""The commands that need no extra: a function `main` of their module gets the arguments."""
# The extras of commands that need more than rich and typer.
_EXTRAS = {"audit": "cli,test", "lsp": "lsp"}


def main() -> None:
    """Run the command line, for the script `handfast` and for `python -m handfast`."""
    command, *arguments = sys.argv[1:] or [""]
    try:
        if command in PLAIN:
            _exit_at_second_interrupt()
            status = import_module(f"handfast.cli.{command}").main(arguments)
            _ignore_interrupts()
            raise SystemExit(status)
        if command == "--version":
            from handfast.cli.usage import out

            out(f"{version_line()}\n")
            raise SystemExit(0)
        from handfast.cli.app import app

        app()
    except ModuleNotFoundError as error:
        # Any other missing module is a bug in handfast or in the program, and is raised.
        if (error.name or "").partition(".")[0] not in {"rich", "typer"}:
            raise
        names = f"{', '.join(PLAIN)} and --version work without them"
        how = install_line(_EXTRAS.get(command, "cli"))
        sys.stderr.write(f"handfast: this needs rich and typer: {how} ({names})\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # before typer handles it
        raise SystemExit(130) from None


def _exit_at_second_interrupt() -> None:
    """Let a second Ctrl-C end the process at once, with the same status as the first.

    It would be raised while the first one is handled, where nothing catches it: then Python kills
    itself with SIGINT, and the status is -2.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if it is ignored
        signal.signal(signal.SIGINT, _interrupted)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C while the interpreter exits: it takes back other handlers before its end."""
    if signal.getsignal(signal.SIGINT) in (_interrupted, _interrupted_again):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interrupted(signum: int, frame: FrameType | None) -> None:
    signal.signal(signum, _interrupted_again)
    raise KeyboardInterrupt


def _interrupted_again(signum: int, frame: FrameType | None) -> None:
    os._exit(130)


def version_line() -> str:
    """Return what `handfast --version` prints."""
    from handfast import __version__

    python = f"Python {platform.python_version()} on {platform.system()}"
    return f"handfast {__version__}, {python}"
