"""`holdfast explore module:function`: run a program under many schedules, and show the one that
breaks it. What is asked for, and what is printed; the exploring itself is `holdfast.explore`.
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

import holdfast.explore
from holdfast.catalogue import UnknownCode, kind
from holdfast.cli.many_runs import LateBar, silence
from holdfast.cli.target import BadTarget, find, near
from holdfast.explore import (
    BadToken,
    Campaign,
    Counterexample,
    Divergence,
    Exploration,
    Uncontrolled,
    WorkersNeedImport,
)
from holdfast.explore.cluster import ClusterMissing
from holdfast.explore.explorer import FAULTS, MODELS
from holdfast.explore.results import line_of
from holdfast.explore.strategies import STRATEGIES

__all__ = ["Command", "explore"]

_CANCEL: dict[str, Any] = {"true": True, "double": "double", "main": "main"}
# Whoever waits longer than this wants to see that something is going on.
_PATIENCE = 0.5


class Command(TyperCommand):
    """As every command, but `--cancel` may stand alone: it never takes the next word for its value,
    unless that is one."""

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
        float | None, typer.Option(metavar="S", help="How long to go on, at most.")
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
    seed: Annotated[int, typer.Option(metavar="N", help="What the sample is drawn from.")] = 0,
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
    """Run a program under the schedules nobody tried, and show the one that breaks it.

    Exit status 0: none found; 1: a counterexample; 2: wrong use, or something that cannot be
    controlled.
    """
    _check_words(model, strategy, fault or [], ignore or [], cancel)
    telling = _Telling(target, html, as_json)
    try:
        # What a module prints when it is imported is no part of the answer.
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            program = find(target)
        if replay is not None:
            telling.replayed(program, replay)
        campaign = Campaign(
            program,
            schedules=schedules,
            seconds=seconds,
            cancel=_CANCEL[cancel] if cancel else False,
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
        telling.explored(campaign)
    except (BadTarget, BadToken, ClusterMissing, WorkersNeedImport, ValueError) as error:
        _bad_use(str(error))
    except Uncontrolled as error:
        line = line_of(error)
        _bad_use(f"{error}\n  called at {line}" if line else str(error))
    except Divergence as error:
        _bad_use(f"the token does not fit: {error}")
    except SystemExit as error:
        # Its status is not ours: 0 would mean that nothing was found.
        _bad_use(f"the program calls sys.exit({error.code!r}): let it return, or raise an error")


# --- wrong use ---------------------------------------------------------------------------------


def _check_words(
    model: str, strategy: str, faults: list[str], ignore: list[str], cancel: str | None
) -> None:
    asked = [("--model", model, MODELS), ("--strategy", strategy, STRATEGIES)]
    asked += [("--fault", each, FAULTS) for each in faults]
    asked += [("--cancel", cancel, tuple(_CANCEL))] if cancel is not None else []
    for option, word, words in asked:
        if word not in words:
            known = f"use one of {', '.join(words)}."
            _bad_use(f"{option} {word!r}: {known}{near(word, words)}")
    for code in ignore:
        try:
            kind(code)
        except UnknownCode as error:
            meant = " or ".join(f"{each.code} {each.name}" for each in error.near)
            question = f" Did you mean {meant}?" if meant else " `holdfast explain` lists all."
            _bad_use(f"--ignore: no bug kind is called {code!r}.{question}")


def _bad_use(what: str) -> NoReturn:
    Console(stderr=True).print(Text(f"holdfast: {what}"), soft_wrap=True)
    raise typer.Exit(2)


# --- what is printed ---------------------------------------------------------------------------


class _Telling:
    """Runs what was asked for, prints what came of it, and leaves with the status that says so."""

    def __init__(self, target: str, page: Path | None, as_json: bool) -> None:
        self._target = target
        self._page = page
        self._as_json = as_json
        self._stdout = sys.stdout
        self._console = Console(file=sys.stdout, highlight=False)

    def explored(self, campaign: Campaign) -> NoReturn:
        bar = _Bar(Console(file=sys.stderr))
        try:
            with silence(), bar:
                campaign.run(bar)
        except KeyboardInterrupt:
            pass  # what was found until then is worth printing
        with silence():
            result = campaign.result()
            found = result.counterexample
            if self._as_json:
                self._say_json(_as_json(self._target, result, self._line(found)))
            else:
                self._say(found, result)
            self._write_page(found)
        if found is not None:
            raise typer.Exit(1)
        raise typer.Exit(130 if result.interrupted else 0)

    def replayed(self, program: Any, token: str) -> NoReturn:
        # The program may speak this once; if the answer is JSON, not on the same stream.
        with redirect_stdout(sys.stderr if self._as_json else sys.stdout):
            found = holdfast.explore.replay(program, token)
        with silence():
            if self._as_json:
                self._say_json(_as_json(self._target, None, self._line(found), found))
            else:
                self._say(found, None)
            self._write_page(found)
        raise typer.Exit(1)

    def _line(self, found: Counterexample | None) -> str:
        token = found.token if found else ""
        return f"holdfast explore {shlex.quote(self._target)} --replay {token}" if token else ""

    def _say(self, found: Counterexample | None, result: Exploration | None) -> None:
        size = ""
        if result is not None:
            missing = [f"not checked: {what}" for what in result.not_checked]
            size = "\n".join([_timed(result), *missing])
        if found is None:
            text = Text(f"nothing found\n{size}")
            text.stylize("bold green", 0, len("nothing found"))
        else:
            text = Text(found.report(self._line(found), size, width=self._console.width))
            text.highlight_regex(r"\A.*", "bold red")
            text.highlight_regex(r"(?m)^replay: .*$", "bold")
        self._console.print(text, soft_wrap=True)

    def _say_json(self, told: dict[str, Any]) -> None:
        self._stdout.write(json.dumps(told, indent=2) + "\n")
        self._stdout.flush()

    def _write_page(self, found: Counterexample | None) -> None:
        if self._page is None or found is None:
            return
        self._page.parent.mkdir(parents=True, exist_ok=True)
        self._page.write_text(found.to_html(self._line(found)), encoding="utf-8")
        if not self._as_json:
            self._console.print(Text(f"page: {self._page}"), soft_wrap=True)


def _timed(result: Exploration) -> str:
    rate = result.schedules / result.seconds if result.seconds else 0.0
    return f"{result.summary} ({result.seconds:.1f} s, {rate:,.0f} schedules a second)"


def _as_json(
    target: str,
    result: Exploration | None,
    line: str,
    found: Counterexample | None = None,
) -> dict[str, Any]:
    """Everything, under keys that stay. What a replay does not know is null."""
    if result is not None:
        found = result.counterexample
    told: dict[str, Any] = {
        "program": target,
        "counterexample": None if found is None else _found_as_json(found, line),
    }
    names = ("schedules", "exhausted", "bound", "within", "complete", "interrupted", "replayable")
    for name in (*names, "unrepeated", "seconds", "summary"):
        told[name] = getattr(result, name, None)
    told["not_checked"] = list(result.not_checked) if result else []
    told["settings"] = asdict(result.settings) if result else None
    told["coverage"] = _coverage_as_json(result) if result else None
    return told


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
        "realised": found.realised,
        "departures": _departures(found),
        "stall": found.stall,
        "steps": found.steps,
        "token": found.token,
        "replay": line,
    }


def _departures(found: Counterexample) -> list[str] | None:
    try:
        return list(found.departures)
    except Divergence:  # it did not do the same once more
        return None


# --- while it runs -----------------------------------------------------------------------------


class _Bar(LateBar):
    """How many schedules, how fast, and what was found."""

    def __init__(self, console: Console) -> None:
        schedules = TextColumn("{task.completed:,} schedules")
        rate = TextColumn("{task.fields[rate]:,.0f} a second")
        found = TextColumn("{task.fields[found]}", style="bold red", markup=False)
        super().__init__(console, _PATIENCE, schedules, BarColumn(), rate, found)

    def __call__(self, now: holdfast.explore.Progress) -> None:
        self.show(
            now.seconds,
            total=now.of,
            completed=now.schedules,
            rate=now.schedules / now.seconds if now.seconds else 0.0,
            found=f"found, now made smaller: {now.found}" if now.found else "nothing found yet",
        )
