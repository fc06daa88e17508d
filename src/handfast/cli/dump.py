"""`handfast dump PID --html page.html`: a snapshot as a page or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from handfast._watch.views.page import page
from handfast.cli.usage import out
from handfast.cli.watched import add_process, add_tasks, parser_for, taken, write


def main(arguments: Sequence[str]) -> int:
    """Write what is alive in a process as one HTML page, or print it as JSON."""
    parser = parser_for("dump", main.__doc__)
    add_process(parser, or_file=True)
    add_tasks(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained page")
    parser.add_argument("--json", action="store_true", help="print JSON; the default")
    options = parser.parse_args(arguments)
    found = taken(options.process, options.tasks)
    if options.html is not None:
        write(options.html, page(found))
    if options.json or options.html is None:
        out(json.dumps(asdict(found), indent=2) + "\n")
    else:
        out(f"page: {options.html}\n")
    return 0
