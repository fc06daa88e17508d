"""`handfast tree PID`: loops, scopes, tasks, and the tasks that they await."""

from __future__ import annotations

from collections.abc import Sequence

from handfast._watch.views import tree as view
from handfast.cli.usage import out
from handfast.cli.watched import add_process, add_tasks, parser_for, taken, width


def main(arguments: Sequence[str]) -> int:
    """Show which scope or task owns which task, and what each of them awaits."""
    parser = parser_for("tree", main.__doc__)
    add_process(parser, or_file=True)
    add_tasks(parser)
    parser.add_argument("--wide", action="store_true", help="do not cut lines")
    options = parser.parse_args(arguments)
    found = taken(options.process, options.tasks)
    out(view.tree(found, None if options.wide else width()))
    return 0
