"""`holdfast tour`: the house from room to room, then the five cases, all running while you look.

The programs are in `stops` and in the casebook; here is only the way round and the frames. A room
counts as built when it can be imported, so the tour grows with the house.
"""

import inspect
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import holdfast
from holdfast import casebook
from holdfast.casebook.pages import write_case, write_index
from holdfast.casebook.telling import Chapter, tell
from holdfast.cli.stops import STOPS, Stop

__all__ = ["ROOMS", "Room", "is_built", "opening", "page_of", "tour", "visit"]


ROOMS_ONLY = "rooms"


class Room(NamedTuple):
    """One room: the question that brings people here, and what they type."""

    name: str
    question: str
    type_this: str


ROOMS = (
    Room("runtime", "How do I write it so that it cannot leak?", "import holdfast"),
    Room("check", "Where is the code that I have already wrong?", "holdfast check src/"),
    Room("leaks", "Which test leaves something behind, and what?", "pytest --holdfast"),
    Room(
        "explore", "Which interleaving, or which cancellation, breaks it?", "@pytest.mark.explore"
    ),
    Room("watch", "What is alive in production, and what is growing?", "holdfast top"),
)


def tour(
    stop: Annotated[
        str,
        typer.Argument(
            help=f"Only this: {ROOMS_ONLY}, or a case: {', '.join(casebook.NAMES)} (or its seed's number)."
        ),
    ] = "",
    html: Annotated[
        Path | None, typer.Option(help="Also write the cases as pages into this folder.")
    ] = None,
) -> None:
    """Walk through the house: small programs that run while you look, then five real systems, each
    as reported, as the report would fix it, and as it should be."""
    cases = asked_for(stop)
    console = Console()
    if not stop or stop == ROOMS_ONLY:
        console.print(welcome())
        for number, each in enumerate(STOPS, start=1):
            console.print(show(number, each))
    for case in cases:
        console.print(opening(case))
        chapters = list(seen_of(case, console))
        if html is not None:
            console.print(f"Written: {write_case(html, case, chapters)}", soft_wrap=True)
    if html is not None and cases:
        console.print(f"Written: {write_index(html, casebook.cases())}", soft_wrap=True)
    if not stop or stop == ROOMS_ONLY:
        console.print(house())


def asked_for(stop: str) -> tuple[casebook.Case, ...]:
    """The cases that are meant."""
    if stop in ("", ROOMS_ONLY):
        return casebook.cases() if not stop else ()
    try:
        return (casebook.find(stop),)
    except casebook.NoSuchCase as error:
        raise typer.BadParameter(f"{error}, and {ROOMS_ONLY}", param_hint="STOP") from None


def opening(case: casebook.Case) -> RenderableType:
    """What a case is about, and what the report claims beside what is true."""
    table = Table(show_lines=True, title_justify="left")
    for heading in ("the report says", "what is true", "shown by"):
        table.add_column(heading, overflow="fold")  # a command that is cut short runs nowhere
    for claim in case.claims:
        table.add_row(claim.report, claim.truth, Text(claim.shown_by, style="cyan"))
    title = Text(f"Case {case.seed}, {case.name}: {case.title}", style="bold")
    return Group("", Panel(Group(Text(case.story), "", table), title=title, title_align="left"))


def seen_of(case: casebook.Case, console: Console) -> Iterator[Chapter]:
    """The chapters of a case, each shown when it has been seen."""
    chapters = iter(tell(case, width=console.width - 4))
    while True:
        with console.status(f"{case.name}: running"):
            chapter = next(chapters, None)
        if chapter is None:
            return
        console.print(page_of(chapter))
        yield chapter


def page_of(chapter: Chapter) -> RenderableType:
    """A chapter in its frame: green for what one would wish for."""
    return Panel(
        Group(Text(f"$ {chapter.command}", style="dim"), "", Text(chapter.text)),
        title=Text(chapter.title, style="bold"),
        title_align="left",
        border_style="green" if chapter.went_well else "red",
    )


def is_built(room: str) -> bool:
    """Whether this room can be imported."""
    spec = find_spec(f"holdfast.{room}")
    # A folder that has no __init__.py is a building site: it has a spec, but no origin.
    return spec is not None and spec.origin is not None


def visit(stop: Stop) -> str:
    """Run one stop to its end, in a loop of its own, and return what it saw."""
    try:
        return holdfast.run(stop.program)
    except holdfast.UnsupportedPlatform as error:  # a platform may lack something, and says what
        return str(error)


def welcome() -> RenderableType:
    """What the house is for."""
    return Panel(
        "A holdfast is the root by which kelp grips the rock.\n"
        "This library is what every asyncio task holds on to: each has an owner, "
        "and closing the owner tells the truth.",
        title="holdfast",
        border_style="cyan",
    )


def show(number: int, stop: Stop) -> RenderableType:
    """One stop in its frame: the program, then what it saw when it ran, just now."""
    started = time.perf_counter()
    seen = visit(stop)
    took = time.perf_counter() - started
    return Panel(
        Group(
            Text(stop.promise, style="italic"),
            "",
            Syntax(source(stop), "python", theme="ansi_dark", background_color="default"),
            Rule("what came of it", style="dim", align="left"),
            Text(seen, style="green"),
        ),
        title=Text(f"{number}. {stop.title}", style="bold"),
        title_align="left",
        subtitle=Text(f"ran in {took:.2f} s", style="dim"),
        subtitle_align="right",
    )


def source(stop: Stop) -> str:
    """The program as it stands in the file."""
    return inspect.getsource(stop.program).rstrip()


def house() -> RenderableType:
    """The rooms: those that are built, and those to come."""
    table = Table(title="The house", title_justify="left", title_style="bold", box=None)
    for heading in ("room", "the question", "what you type", ""):
        table.add_column(heading)
    for room in ROOMS:
        built = is_built(room.name)
        state = Text("here", style="green") if built else Text("to come", style="yellow")
        style = "" if built else "dim"
        table.add_row(room.name, room.question, Text(room.type_this), state, style=style)
    after = "Every room speaks of bug kinds by one code: `holdfast explain` lists them."
    return Group("", table, "", Text(after))
