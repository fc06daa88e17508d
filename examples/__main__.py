"""`python -m examples [NAME]`: run the examples and show what each tool says about them.

Without a name, it runs the first steps and then all five examples. Everything that it prints comes
from the programs that it has just run.
"""

import inspect
import time
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import examples
import handfast
from examples.first_steps import STEPS, Step
from examples.show import Section, sections

__all__ = ["main", "run_step", "selected"]

FIRST_STEPS = "first_steps"


def main(
    name: Annotated[
        str,
        typer.Argument(
            help=f"{FIRST_STEPS}, or an example: {', '.join(examples.NAMES)}, or its number."
        ),
    ] = "",
) -> None:
    """Run the first steps and the five examples, or only the one that NAME selects, and show what
    each tool says."""
    chosen = selected(name)
    console = Console()
    if name in ("", FIRST_STEPS):
        for number, step in enumerate(STEPS, start=1):
            console.print(step_panel(number, step))
    for example in chosen:
        console.print(introduction(example))
        print_sections(example, console)


def selected(name: str) -> tuple[examples.Example, ...]:
    """The examples that `name` selects; all of them if it is empty."""
    if name == FIRST_STEPS:
        return ()
    if not name:
        return examples.all_examples()
    try:
        return (examples.find(name),)
    except examples.NoSuchExample as error:
        raise typer.BadParameter(f"{error}, and {FIRST_STEPS}", param_hint="NAME") from None


# --- the first steps -------------------------------------------------------------------------------


def step_panel(number: int, step: Step) -> RenderableType:
    """One step: its program, and what the program returned when it ran just now."""
    started = time.perf_counter()
    output = run_step(step)
    took = time.perf_counter() - started
    return Panel(
        Group(
            Text(step.summary, style="italic"),
            "",
            Syntax(source_of(step), "python", theme="ansi_dark", background_color="default"),
            Rule("output", style="dim", align="left"),
            Text(output, style="green"),
        ),
        title=Text(f"{number}. {step.title}", style="bold"),
        title_align="left",
        subtitle=Text(f"ran in {took:.2f} s", style="dim"),
        subtitle_align="right",
    )


def run_step(step: Step) -> str:
    """Run one step in an event loop of its own, and return its output."""
    try:
        return handfast.run(step.program)
    except handfast.errors.UnsupportedPlatform as error:
        return str(error)


def source_of(step: Step) -> str:
    """The step's program as it is written in the file."""
    return inspect.getsource(step.program).rstrip()


# --- the examples ----------------------------------------------------------------------------------


def introduction(example: examples.Example) -> RenderableType:
    """The system that an example shows, and the report's claims beside what is true."""
    table = Table(show_lines=True, title_justify="left")
    for heading in ("the report says", "what is true", "shown by"):
        table.add_column(heading, overflow="fold")  # a truncated command cannot be copied
    for claim in example.claims:
        table.add_row(claim.report, claim.truth, Text(claim.shown_by, style="cyan"))
    title = Text(f"Report {example.number}, {example.name}: {example.title}", style="bold")
    return Group("", Panel(Group(Text(example.story), "", table), title=title, title_align="left"))


def print_sections(example: examples.Example, console: Console) -> None:
    """Print each section as soon as its tool has run."""
    remaining = sections(example, width=console.width - 4)
    while True:
        with console.status(f"{example.name}: running"):
            section = next(remaining, None)
        if section is None:
            return
        console.print(section_panel(section))


def section_panel(section: Section) -> RenderableType:
    """A section in a frame: green if the tool found nothing, red otherwise."""
    return Panel(
        Group(Text(f"$ {section.command}", style="dim"), "", Text(section.text)),
        title=Text(section.title, style="bold"),
        title_align="left",
        border_style="green" if section.ok else "red",
    )


if __name__ == "__main__":
    typer.run(main)
