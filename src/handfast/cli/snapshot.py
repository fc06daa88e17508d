"""`handfast snapshot PID -o a.json`: what is alive in a process, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from handfast._watch.views.cells import count_of
from handfast.cli.usage import out
from handfast.cli.watched import add_process, add_tasks, parser_for, taken, write


def main(arguments: Sequence[str]) -> int:
    """Write what is alive in a process to a file, for `diff`, `tree` and `dump`."""
    parser = parser_for("snapshot", main.__doc__)
    add_process(parser)
    add_tasks(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the file; without it, standard output"
    )
    options = parser.parse_args(arguments)
    found = taken(options.process, options.tasks)
    if options.output is None:
        out(found.to_json() + "\n")
    else:
        write(options.output, found.to_json())
        out(f"{options.output}: {count_of(found.alive, 'task')}\n")
    return 0
