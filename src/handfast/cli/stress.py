"""`handfast stress module:function`: run a function many times, cancel it at random steps, and show
what grows. This file has the options and the output; `handfast._leaks.stress` does the runs.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from enum import Enum
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import TextColumn
from rich.text import Text

from handfast._leaks.stress.outcomes import error_with_line
from handfast._leaks.stress.report import StressReport, can_encode_blocks
from handfast._leaks.stress.stress import FirstRunTimeout, Progress, StressRun
from handfast._runtime.arguments import CLOSE_TIMEOUT
from handfast.cli.progress import LateBar, silence
from handfast.cli.target import BadTarget, find
from handfast.cli.usage import usage_error

# Seconds before a progress bar is shown.
_BAR_AFTER = 2.0


class CancelMode(Enum):
    """Which runs are cancelled."""

    RANDOM = "random"
    NONE = "none"


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
        CancelMode,
        typer.Option(
            help="random: cancel nine of ten runs, each at a random step; none: cancel no run.",
            metavar="random|none",
        ),
    ] = CancelMode.RANDOM,
    seed: Annotated[
        int, typer.Option(metavar="N", help="The same seed cancels at the same steps.")
    ] = 0,
    timeout: Annotated[
        float, typer.Option(metavar="S", help="Seconds that a run may take.")
    ] = CLOSE_TIMEOUT,
    memory: Annotated[bool, typer.Option("--memory", help="Also trace memory; slower.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run a function many times, cancel it at random steps, and show what grows.

    Tasks, unread errors, timers, generators, children, threads, connections,
    resources, descriptors and kept results of tasks are counted after each of
    twenty rounds. Only a trend counts: a pool that fills once is no growth.

    Exit status 0: nothing grows; 1: something does, or a run did not end;
    2: wrong use, or the function fails without a cancel; 130: interrupted.
    """
    try:
        # With --json, what a module prints on import must not be on stdout.
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            program = find(target)
        options: dict[str, Any] = {"seed": seed, "timeout": timeout, "memory": memory}
        stress_run = StressRun(
            program, n, cancel=None if cancel is CancelMode.NONE else "random", **options
        )
    except (BadTarget, ValueError) as error:
        usage_error(str(error))
    _run(stress_run)
    _print(target, stress_run.report(), as_json)


def _run(stress_run: StressRun) -> None:
    bar = _Bar(Console(file=sys.stderr))
    try:
        with silence(), bar:
            stress_run.run(bar)
    except KeyboardInterrupt:
        pass  # what was counted until then is printed
    except SystemExit as error:
        # With its status, 0 would mean that nothing grows.
        usage_error(f"the program calls sys.exit({error.code!r}): let it return, or raise an error")
    except FirstRunTimeout as error:
        usage_error(str(error))
    except Exception as error:
        if error is not stress_run.first_error:
            raise
        usage_error(f"the function fails without a cancel: {error_with_line(error)}")


def _print(target: str, report: StressReport, as_json: bool) -> NoReturn:
    if as_json:
        sys.stdout.write(json.dumps(_as_json(target, report), indent=2) + "\n")
        sys.stdout.flush()
    else:
        text = Text(report.text(unicode=can_encode_blocks(sys.stdout)))
        text.highlight_regex(r"\A.*", "bold green" if report.clean else "bold red")
        Console(file=sys.stdout, highlight=False).print(text, soft_wrap=True)
    if report.interrupted:
        raise typer.Exit(130)
    raise typer.Exit(0 if report.clean else 1)


def _as_json(target: str, report: StressReport) -> dict[str, Any]:
    verdict = {"program": target, "clean": report.clean, "summary": report.headline}
    return verdict | asdict(report)


class _Bar(LateBar):
    """How many runs are done, and what grows."""

    def __init__(self, console: Console) -> None:
        runs = "{task.completed:,} of {task.total:,} runs"
        growing = TextColumn("{task.fields[growing]}", markup=False)
        super().__init__(console, _BAR_AFTER, runs, "bar", growing)

    def __call__(self, now: Progress) -> None:
        growing = f"growing: {', '.join(now.growing)}" if now.growing else "nothing grows yet"
        self.show(now.seconds, total=now.of, completed=now.runs, growing=growing)
