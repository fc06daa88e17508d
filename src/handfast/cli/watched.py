"""The process or the snapshot file that a command on a live process names.

A process is named by its id or by the name of its program. If exactly one is watched, it need not be
named. A file ends with `.json`, or has a folder in its name.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from handfast._watch.agent.agent import MAX_TASKS
from handfast.cli.usage import usage_error
from handfast.watch import Client, Snapshot, SnapshotError, WatchError, connect, processes

HOW_TO_START = (
    "start a program with HANDFAST_WATCH=1 in its environment, call handfast.watch.serve() in it, "
    "or run `handfast attach PID`"
)
TASKS = 10_000
"""How many tasks a snapshot lists, unless the command says otherwise."""


def parser_for(command: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    return argparse.ArgumentParser(prog=f"handfast {command}", description=description)


def add_process(parser: argparse.ArgumentParser, *, or_file: bool = False) -> None:
    """Add the argument that names a process."""
    file = ", or a snapshot file" if or_file else ""
    parser.add_argument(
        "process",
        nargs="?",
        metavar="PID|NAME",
        help=f"a watched process{file}; may be left out if only one is watched",
    )


def add_tasks(parser: argparse.ArgumentParser) -> None:
    """Add the option that limits the tasks of a snapshot."""
    parser.add_argument(
        "--tasks",
        type=_number,
        default=TASKS,
        metavar="N",
        help="list at most N tasks, the oldest first [default: 10000]",
    )


def _number(text: str) -> int:
    number = int(text)
    if not 0 <= number <= MAX_TASKS:
        raise argparse.ArgumentTypeError(f"use a number from 0 to {MAX_TASKS}")
    return number


def connected(name: str | None) -> Client:
    """Connect to the process of this name; end the command if that is impossible."""
    try:
        return connect(_only_one() if name is None else name)
    except WatchError as error:
        usage_error(str(error))


def _only_one() -> int:
    found = processes()
    if not found:
        raise WatchError(f"no process is watched: {HOW_TO_START}")
    if len(found) > 1:
        listed = ", ".join(f"{each.pid} {each.program}" for each in found)
        raise WatchError(f"{len(found)} processes are watched, so name one: {listed}")
    return found[0].pid


def taken(name: str | None, tasks: int) -> Snapshot:
    """Return the snapshot that a word on the command line names: of a process, or in a file."""
    if name is not None and (name.endswith(".json") or os.sep in name):
        return _in_file(Path(name))
    with connected(name) as client:
        try:
            return client.snapshot(tasks)
        except WatchError as error:
            usage_error(str(error))


def _in_file(path: Path) -> Snapshot:
    try:
        return Snapshot.from_json(path.read_bytes())
    except OSError as error:
        usage_error(f"{path} cannot be read: {error.strerror}")
    except (SnapshotError, UnicodeError) as error:
        usage_error(f"{path}: {error}")


def write(path: Path, text: str) -> None:
    """Write a file; end the command if that is impossible."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        usage_error(f"{path} cannot be written: {error.strerror}")


def width() -> int:
    """Return the columns of the terminal, or 100 if the output goes elsewhere."""
    return shutil.get_terminal_size((100, 24)).columns
