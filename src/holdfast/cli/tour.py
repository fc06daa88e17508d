"""`holdfast tour`: the house from room to room, with programs that run while you look.

The programs are in `stops`; here is only the way round and the frames. A room counts as built when
it can be imported, so the tour grows with the house.
"""

import inspect
import time
from importlib.util import find_spec
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import holdfast
from holdfast.cli.stops import STOPS, Stop

__all__ = ["ROOMS", "Room", "is_built", "tour", "visit"]


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


def tour() -> None:
    """Walk through the house: small programs that run while you look."""
    console = Console()
    console.print(welcome())
    for number, stop in enumerate(STOPS, start=1):
        console.print(show(number, stop))
    console.print(house())


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
