"""`handfast explore module:function`: run a program under many schedules, and show the one that
breaks it. Options and output only; `handfast.explore` does the rest.
"""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.text import Text
from typer.core import TyperCommand

import handfast.explore
from handfast._explore.campaign import Campaign, Progress
from handfast._explore.replay import line_of
from handfast._explore.search.cluster import ClusterMissing
from handfast._explore.search.plan import FAULTS, MODELS, BadOption, Options
from handfast._explore.search.strategies import STRATEGIES
from handfast._explore.search.workers import WorkersNeedImport
from handfast.catalogue import UnknownCode, kind
from handfast.cli.progress import LateBar, silence
from handfast.cli.target import BadTarget, find, near
from handfast.cli.usage import usage_error
from handfast.explore import BadToken, Counterexample, Divergence, Exploration, Uncontrolled

__all__ = ["Command", "explore"]

_CANCEL: dict[str, Any] = {"true": True, "double": "double", "main": "main"}
# Seconds until the progress bar is shown.
_BAR_DELAY = 0.5


class Command(TyperCommand):
    """A command whose `--cancel` may have no value.

    It takes the next word as its value only if that is one of the possible values.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        spelt: list[str] = []
        for word in args:
            if spelt and spelt[-1] == "--cancel=true" and word in _CANCEL:
                spelt[-1] = f"--cancel={word}"
            else:
                spelt.append("--cancel=true" if word == "--cancel" else word)
        return super().parse_args(ctx, spelt)


def explore(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="An async function without arguments: package.module:function or file.py:function.",
        ),
    ],
    schedules: Annotated[
        int | None, typer.Option(metavar="N", help="How many schedules to run. [default: 1000]")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="For how many seconds to search, at most.")
    ] = None,
    cancel: Annotated[
        str | None,
        typer.Option(
            metavar="[double|main]",
            help="Cancel each task at each step; =double: twice; =main: the program itself.",
        ),
    ] = None,
    model: Annotated[str, typer.Option(metavar="|".join(MODELS))] = "strict",
    strategy: Annotated[str, typer.Option(metavar="|".join(STRATEGIES))] = "portfolio",
    stall: Annotated[
        float, typer.Option(metavar="S", help="By how much the loop may be late, in seconds.")
    ] = 0.1,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="|".join(FAULTS), help="A fault to inject; may be given again."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="A bug kind that does not count; may be given again."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of the random schedules.")] = 0,
    workers: Annotated[int, typer.Option(metavar="N", help="How many processes.")] = 1,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on a cluster of dask.distributed.")
    ] = None,
    replay: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Run only the schedule of this token.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the counterexample as a page.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    real_io: Annotated[
        bool, typer.Option("--real-io", help="Allow real I/O; the result cannot be replayed.")
    ] = False,
) -> None:
    """Run a program under many schedules, and show the one that breaks it.

    Exit status 0: none found; 1: a counterexample; 2: wrong use, or the program did something that
    the explorer cannot control.
    """
    display = _Display(target, html, as_json)
    try:
        # What a module prints when it is imported is no part of the output.
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            program = find(target)
        if replay is not None:
            display.replay(program, replay)
        options = Options(
            schedules=schedules,
            seconds=seconds,
            cancel=_cancel(cancel),
            model=model,  # type: ignore[arg-type]
            strategy=strategy,
            stall=stall,
            faults=fault or (),
            ignore=ignore or (),
            seed=seed,
            workers=workers,
            cluster=cluster,
            real_io=real_io,
        )
        display.explore(Campaign(program, options))
    except BadOption as error:
        usage_error(_in_options(error))
    except (BadTarget, BadToken, ClusterMissing, WorkersNeedImport, ValueError) as error:
        usage_error(_of_value_error(error))
    except Uncontrolled as error:
        line = line_of(error)
        usage_error(f"{error}\n  called at {line}" if line else str(error))
    except Divergence as error:
        usage_error(f"the token does not fit: {error}")
    except SystemExit as error:
        # Its status is not ours: 0 would mean that nothing was found.
        usage_error(f"the program calls sys.exit({error.code!r}): let it return, or raise an error")


# --- wrong use ---------------------------------------------------------------------------------


def _cancel(word: str | None) -> Any:
    if word is None:
        return False
    if word not in _CANCEL:
        raise BadOption("cancel", word, tuple(_CANCEL))
    return _CANCEL[word]


def _in_options(error: BadOption) -> str:
    """The error with the option's name as it is on the command line."""
    option = "--fault" if error.name == "faults" else f"--{error.name}"
    known = f"use one of {', '.join(error.choices)}."
    return f"{option} {error.value!r}: {known}{near(str(error.value), error.choices)}"


def _of_value_error(error: Exception) -> str:
    unknown = error.__cause__
    if not isinstance(unknown, UnknownCode):
        return str(error)
    meant = " or ".join(f"{each.code} {each.name}" for each in unknown.near)
    question = f" Did you mean {meant}?" if meant else " `handfast explain` lists all."
    return f"--ignore: no bug kind is called {unknown.code!r}.{question}"


# --- what is printed ---------------------------------------------------------------------------


class _Display:
    """Runs the exploration or the replay, prints the result, and exits with its status."""

    def __init__(self, target: str, page: Path | None, as_json: bool) -> None:
        self._target = target
        self._page = page
        self._as_json = as_json
        self._stdout = sys.stdout
        self._console = Console(file=sys.stdout, highlight=False)

    def explore(self, campaign: Campaign) -> NoReturn:
        bar = _Bar(Console(file=sys.stderr))
        try:
            with silence(), bar:
                campaign.run(bar)
        except KeyboardInterrupt:
            pass  # print what was found until then
        with silence():
            result = campaign.result()
            found = result.counterexample
            if self._as_json:
                self._print_json(_as_json(self._target, result, self._line(found)))
            else:
                self._print(found, result)
            self._write_page(found)
        if found is not None:
            raise typer.Exit(1)
        raise typer.Exit(130 if result.interrupted else 0)

    def replay(self, program: Any, token: str) -> NoReturn:
        # The program may print this once; if the output is JSON, to the other stream.
        with redirect_stdout(sys.stderr if self._as_json else sys.stdout):
            found = handfast.explore.replay(program, token)
        with silence():
            if self._as_json:
                self._print_json(_as_json(self._target, None, self._line(found), found))
            else:
                self._print(found, None)
            self._write_page(found)
        raise typer.Exit(1)

    def _line(self, found: Counterexample | None) -> str:
        token = found.token if found else ""
        return f"handfast explore {shlex.quote(self._target)} --replay {token}" if token else ""

    def _print(self, found: Counterexample | None, result: Exploration | None) -> None:
        size = ""
        if result is not None:
            size = "\n".join([_timed(result), *map(_as_option, result.not_checked)])
        if found is None:
            text = Text(f"nothing found\n{size}")
            text.stylize("bold green", 0, len("nothing found"))
        else:
            text = Text(found.report(self._line(found), size, width=self._console.width))
            text.highlight_regex(r"\A.*", "bold red")
            text.highlight_regex(r"(?m)^replay: .*$", "bold")
        self._console.print(text, soft_wrap=True)

    def _print_json(self, data: dict[str, Any]) -> None:
        self._stdout.write(json.dumps(data, indent=2) + "\n")
        self._stdout.flush()

    def _write_page(self, found: Counterexample | None) -> None:
        if self._page is None or found is None:
            return
        self._page.parent.mkdir(parents=True, exist_ok=True)
        self._page.write_text(found.to_html(self._line(found)), encoding="utf-8")
        if not self._as_json:
            self._console.print(Text(f"page: {self._page}"), soft_wrap=True)


def _as_option(sentence: str) -> str:
    """A sentence that names an argument of `explore()`, with the option of the command line."""
    return sentence.replace("cancel=...", "--cancel").replace("cancel='main'", "--cancel=main")


def _timed(result: Exploration) -> str:
    rate = result.schedules / result.seconds if result.seconds else 0.0
    return f"{result.summary} ({result.seconds:.1f} s, {rate:,.0f} schedules a second)"


def _as_json(
    target: str,
    result: Exploration | None,
    line: str,
    found: Counterexample | None = None,
) -> dict[str, Any]:
    """Everything, under stable keys. What a replay does not know is null."""
    if result is not None:
        found = result.counterexample
    data: dict[str, Any] = {
        "program": target,
        "counterexample": None if found is None else _found_as_json(found, line),
    }
    names = ("schedules", "exhausted", "bound", "within", "complete", "interrupted", "replayable")
    for name in (*names, "unrepeated", "seconds", "summary"):
        data[name] = getattr(result, name, None)
    data["not_checked"] = list(result.not_checked) if result else []
    data["settings"] = asdict(result.settings) if result else None
    data["coverage"] = _coverage_as_json(result) if result else None
    return data


def _coverage_as_json(result: Exploration) -> dict[str, int]:
    names = ("schedules", "pairs", "choice_points", "points_cancelled", "points_seen")
    return {name: getattr(result.coverage, name) for name in names}


def _found_as_json(found: Counterexample, line: str) -> dict[str, Any]:
    verdict = found.verdict
    return {
        "code": found.code,
        "name": kind(found.code).name,
        "message": verdict.message,
        "where": list(verdict.where),
        "error_type": verdict.error_type,
        "model": found.model,
        "departures": list(found.departures),
        "stall": found.stall,
        "steps": found.steps,
        "token": found.token,
        "replay": line,
    }


# --- while it runs -----------------------------------------------------------------------------


class _Bar(LateBar):
    """Shows how many schedules were run, how fast, and what was found."""

    def __init__(self, console: Console) -> None:
        schedules = TextColumn("{task.completed:,} schedules")
        rate = TextColumn("{task.fields[rate]:,.0f} a second")
        found = TextColumn("{task.fields[found]}", style="bold red", markup=False)
        super().__init__(console, _BAR_DELAY, schedules, BarColumn(), rate, found)

    def __call__(self, now: Progress) -> None:
        self.show(
            now.seconds,
            total=now.of,
            completed=now.schedules,
            rate=now.schedules / now.seconds if now.seconds else 0.0,
            found=f"found, now shrinking: {now.found}" if now.found else "nothing found yet",
        )
