"""`handfast audit [PATH]`: all tools at once, on a project as it is.

The options and the output; `handfast._audit` does the work.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from handfast import __version__
from handfast._audit.audit import make_plan, run_audit
from handfast._audit.demo import write_demo
from handfast._audit.output.html import html
from handfast._audit.output.json import json
from handfast._audit.output.sarif import sarif
from handfast._audit.output.text import text
from handfast._audit.report import AuditReport
from handfast.cli.progress import LateBar
from handfast.cli.usage import usage_error

__all__ = ["audit"]

# Seconds after which the progress is shown.
_PATIENCE = 1.0
_MINUTES, _DEMO_MINUTES, _MOST_MINUTES = 3.0, 0.3, 10_080.0


def audit(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The folder of the project.")] = ".",
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.05,
            max=_MOST_MINUTES,
            metavar="N",
            help="The time for all tools together. Default: 3.",
            show_default=False,
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The interpreter that runs the tests. Default: .venv, venv, VIRTUAL_ENV, this one.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what was found and would run, and stop.")
    ] = False,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Also write all findings as JSON.")
    ] = None,
    sarif_file: Annotated[
        str | None, typer.Option("--sarif", metavar="FILE", help="Also write them as SARIF.")
    ] = None,
    html_file: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Also write them as one page.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Audit a small service with four bugs instead.")
    ] = False,
) -> None:
    """Run all tools on a project as it is.

    They check its sources, look for leaks of its tests, and explore its async tests. Nothing in the
    project is changed, and nothing has to be installed in it.

    Exit status 0: no findings; 1: findings; 2: wrong usage; 130: interrupted.
    """
    if demo:
        path, minutes = _demo_folder(), minutes or _DEMO_MINUTES
    if not Path(path).is_dir():
        usage_error(f"{path} is not a folder: name the folder of a project")
    for output in filter(None, (json_file, sarif_file, html_file)):
        if not Path(output).absolute().parent.is_dir():
            usage_error(f"{output} cannot be written: its folder does not exist")
    # handfast's own environment has what the tests of the demo need.
    environment = {} if demo else os.environ
    plan = make_plan(Path(path), python, (minutes or _MINUTES) * 60, environment)
    if demo:
        # Its tests need no plugin, and pytest starts in a third of the time without them.
        plan = replace(plan, environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    if python is not None and not plan.interpreter.version:
        usage_error(f"{python} is no Python: {plan.interpreter.trouble}")
    _out("".join(f"{line}\n" for line in plan.lines()))
    if dry_run:
        raise typer.Exit(0)
    sys.stdout.flush()
    with _Bar() as bar, _interrupted_by_sigterm():
        report = run_audit(plan, bar)
    _out(f"\n{text(report)}")
    for file, render in ((json_file, json), (sarif_file, sarif), (html_file, html)):
        if file is not None:
            _write(file, render, report)
    raise typer.Exit(130 if report.interrupted else 1 if report.sure else 0)


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """End as after Ctrl-C: a CI system that cancels the job must not leave the tests running."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _demo_folder() -> str:
    """A folder that stays, so that the commands of the report can be tried."""
    folder = tempfile.mkdtemp(prefix="handfast-demo-")
    write_demo(Path(folder))
    return folder


def _write(file: str, render: Callable[..., str], report: AuditReport) -> None:
    try:
        Path(file).write_text(render(report, version=__version__), encoding="utf-8")
    except OSError as error:
        usage_error(f"{file} cannot be written: {error.strerror}")
    typer.echo(f"Wrote {file}.")


def _out(text: str) -> None:
    # A file name or a message may have characters that the terminal's encoding does not.
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)


class _Bar(LateBar):
    """Which step runs, and how far it is."""

    def __init__(self) -> None:
        super().__init__(None, _PATIENCE, "{task.fields[step]}: {task.fields[text]}")
        self._began = time.monotonic()

    def __call__(self, step: str, text: str) -> None:
        seconds = time.monotonic() - self._began
        self.show(seconds, step=f"{seconds:3.0f} s  {step}", text=text)
