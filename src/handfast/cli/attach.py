"""`handfast attach PID`: start the watch in a process that runs already."""

from __future__ import annotations

from collections.abc import Sequence

from handfast._watch.attach import attach
from handfast.cli.usage import out, usage_error
from handfast.cli.watched import parser_for
from handfast.watch import WatchError


def main(arguments: Sequence[str]) -> int:
    """Start the watch in a process that runs already, and was not prepared for it.

    From Python 3.14 on, Python itself does it. Before, gdb does: that is not without risk for the
    process, so it takes `--gdb`.
    """
    parser = parser_for("attach", main.__doc__)
    parser.add_argument("pid", type=int, metavar="PID")
    parser.add_argument("--gdb", action="store_true", help="use gdb, for Python 3.11 to 3.13")
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="S", help="[default: 30 seconds]"
    )
    options = parser.parse_args(arguments)
    try:
        attach(options.pid, gdb=options.gdb, timeout=options.timeout)
    except WatchError as error:
        usage_error(str(error))
    out(f"process {options.pid} is watched: handfast top {options.pid}\n")
    return 0
