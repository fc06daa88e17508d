"""`handfast ps`: the processes of this user that are watched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from handfast._watch.connection.client import answers
from handfast._watch.views.table import processes_table
from handfast.cli.usage import note, out, usage_error
from handfast.cli.watched import HOW_TO_START, parser_for, width
from handfast.watch import Snapshot, WatchedProcess, WatchError, connect


def main(arguments: Sequence[str]) -> int:
    """List the watched processes: loops, tasks, and what grows, is kept, or never wakes."""
    parser = parser_for("ps", main.__doc__)
    parser.add_argument("--json", action="store_true", help="print a JSON list of summaries")
    options = parser.parse_args(arguments)
    found: list[Snapshot] = []
    silent: list[WatchError] = []
    try:
        for answer in answers():
            _read(answer, found, silent)
    except WatchError as error:  # the folder of the sockets
        usage_error(str(error))
    if options.json:
        out(json.dumps([asdict(each) for each in found], indent=2) + "\n")
    elif found:
        out(processes_table(found, width()))
    for problem in silent:
        note(f"handfast: {problem}")
    if not (options.json or found or silent):
        note(f"no process is watched: {HOW_TO_START}")
    return 0


def _read(
    answer: WatchedProcess | WatchError, found: list[Snapshot], silent: list[WatchError]
) -> None:
    if isinstance(answer, WatchError):  # it is stopped, or has four clients
        silent.append(answer)
        return
    try:
        with connect(answer.pid) as client:
            found.append(client.summary())
    except WatchError as error:  # it has ended since
        silent.append(error)
