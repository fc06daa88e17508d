"""`handfast diff a.json b.json`: what changed between two snapshots of a process."""

from __future__ import annotations

import json
from collections.abc import Sequence

from handfast._watch.diff import compare
from handfast._watch.views.diff import diff, diff_as_json
from handfast.cli.usage import out
from handfast.cli.watched import parser_for, taken, width


def main(arguments: Sequence[str]) -> int:
    """Show which places have more or fewer tasks in the second snapshot."""
    parser = parser_for("diff", main.__doc__)
    parser.add_argument("before", metavar="A", help="a snapshot file")
    parser.add_argument("after", metavar="B", help="a later one, or a watched process")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    changes = compare(taken(options.before, 0), taken(options.after, 0))
    if options.json:
        out(json.dumps(diff_as_json(changes), indent=2) + "\n")
    else:
        out(diff(changes, width()))
    return 0
