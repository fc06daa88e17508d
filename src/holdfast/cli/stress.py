"""`holdfast stress module:function`: run a function many times, cancelled at random steps, and show
what grows. What is asked for, and what is printed; the runs themselves are `holdfast.leaks`' work.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.text import Text

from holdfast.cli.many_runs import LateBar, silence
from holdfast.cli.target import BadTarget, find, near
from holdfast.leaks.outcomes import told
from holdfast.leaks.plot import can_draw
from holdfast.leaks.stress_report import StressReport
from holdfast.leaks.stressing import Course, Endless, Progress

__all__ = ["stress"]

_CANCEL: dict[str, Any] = {"random": "random", "none": None}
# Whoever waits longer than this wants to see that something is going on.
_PATIENCE = 2.0


def stress(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="An async function without arguments: package.module:function or file.py:function.",
        ),
    ],
    n: Annotated[int, typer.Option("-n", metavar="N", help="How many runs.")] = 1000,
    cancel: Annotated[
        str,
        typer.Option(
            metavar="|".join(_CANCEL),
            help="random: cancel nine runs of ten, each at a step drawn by lot; none: let all end.",
        ),
    ] = "random",
    seed: Annotated[
        int, typer.Option(metavar="N", help="The same seed cancels at the same steps.")
    ] = 0,
    deadline: Annotated[
        float, typer.Option(metavar="S", help="Seconds in which a run has to end.")
    ] = 10.0,
    memory: Annotated[
        bool, typer.Option("--memory", help="Look for growing memory, too; slower.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run a function again and again, cancel it at random steps, and show what grows.

    Tasks, unread errors, timers, generators, children, threads, connections,
    resources, descriptors and kept results of tasks are counted after each of
    twenty rounds. A trend decides: a pool that fills once is no growth.

    Exit status 0: nothing grows; 1: something does, or a run did not end;
    2: wrong use, or the function fails by itself; 130: interrupted.
    """
    if cancel not in _CANCEL:
        known = f"use one of {', '.join(_CANCEL)}."
        _bad_use(f"--cancel {cancel!r}: {known}{near(cancel, _CANCEL)}")
    try:
        # What a module prints when it is imported is no part of the answer.
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            program = find(target)
        options: dict[str, Any] = {"seed": seed, "deadline": deadline, "memory": memory}
        course = Course(program, n, cancel=_CANCEL[cancel], **options)
    except (BadTarget, ValueError) as error:
        _bad_use(str(error))
    _run(course)
    _say(target, course.report(), as_json)


def _run(course: Course) -> None:
    bar = _Bar(Console(file=sys.stderr))
    try:
        with silence(), bar:
            course.run(bar)
    except KeyboardInterrupt:
        pass  # what was seen until then is worth printing
    except SystemExit as error:
        # Its status is not ours: 0 would mean that nothing grows.
        _bad_use(f"the program calls sys.exit({error.code!r}): let it return, or raise an error")
    except Endless as error:
        _bad_use(str(error))
    except Exception as error:
        if error is not course.first_error:
            raise
        _bad_use(f"it fails by itself, without any cancel: {told(error)}")


def _bad_use(what: str) -> NoReturn:
    Console(stderr=True).print(Text(f"holdfast: {what}"), soft_wrap=True)
    raise typer.Exit(2)


# --- what is printed ---------------------------------------------------------------------------


def _say(target: str, report: StressReport, as_json: bool) -> NoReturn:
    if as_json:
        sys.stdout.write(json.dumps(_as_json(target, report), indent=2) + "\n")
        sys.stdout.flush()
    else:
        text = Text(report.text(braille=can_draw(sys.stdout)))
        text.highlight_regex(r"\A.*", "bold green" if report.clean else "bold red")
        Console(file=sys.stdout, highlight=False).print(text, soft_wrap=True)
    if report.interrupted:
        raise typer.Exit(130)
    raise typer.Exit(0 if report.clean else 1)


def _as_json(target: str, report: StressReport) -> dict[str, Any]:
    """Everything, under keys that stay."""
    verdict = {"program": target, "clean": report.clean, "summary": report.headline}
    return verdict | asdict(report)


# --- while it runs -----------------------------------------------------------------------------


class _Bar(LateBar):
    """How many runs of how many, and what grows."""

    def __init__(self, console: Console) -> None:
        runs = TextColumn("{task.completed:,} of {task.total:,} runs")
        growing = TextColumn("{task.fields[growing]}", markup=False)
        super().__init__(console, _PATIENCE, runs, BarColumn(), growing)

    def __call__(self, now: Progress) -> None:
        growing = f"growing: {', '.join(now.growing)}" if now.growing else "nothing grows yet"
        self.show(now.seconds, total=now.of, completed=now.runs, growing=growing)
