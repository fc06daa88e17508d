"""`holdfast explain HF101`: one bug kind of the catalogue, or the list of all.

It shows what the catalogue says, in its words; nothing is explained here.
"""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from holdfast.catalogue import FAMILIES, KINDS, BugKind, UnknownCode, kind

__all__ = ["explain"]


def explain(
    code: Annotated[
        str | None,
        typer.Argument(help="A code or a name, such as HF101. Without one: the list of all."),
    ] = None,
) -> None:
    """Say what a bug kind is, why it bites, and what to write instead."""
    if code is None:
        Console().print(contents())
        return
    try:
        found = kind(code)
    except UnknownCode as error:
        Console(stderr=True).print(Text(unknown(error)), soft_wrap=True)
        raise typer.Exit(2) from None
    Console().print(page(found))


def unknown(error: UnknownCode) -> str:
    """What a person who mistyped wants to read."""
    lines = [f"holdfast: no bug kind is called {error.code!r}."]
    if error.near:
        lines += ["Did you mean:", *(f"  {near.code}  {near.name}" for near in error.near)]
    lines.append("`holdfast explain` lists all of them.")
    return "\n".join(lines)


def contents() -> RenderableType:
    """Every code, by family."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for prefix, family in FAMILIES.items():
        table.add_row(Text(f"{prefix}xx", style="dim"), Text(family, style="dim"))
        for entry in KINDS:
            if entry.code.startswith(prefix):
                table.add_row(entry.code, entry.name, prose(entry.summary))
        table.add_row()
    return Group(table, Text("`holdfast explain CODE` shows one of them.", style="dim"))


def page(entry: BugKind) -> RenderableType:
    """One kind: what it is, why it is bad, the wrong and the right example."""
    return Group(
        Panel(
            prose(entry.summary),
            title=Text(f"{entry.code} {entry.name}", style="bold"),
            title_align="left",
            subtitle=Text(entry.family, style="dim"),
            subtitle_align="right",
            border_style="cyan",
        ),
        Padding(prose(entry.why), (1, 2)),
        example("wrong", entry.wrong, "red"),
        example("right", entry.right, "green"),
        *fine(entry),
    )


def fine(entry: BugKind) -> Iterator[RenderableType]:
    """When it is right to ignore it, where a rule of the checker can be ignored."""
    if entry.fine:
        yield Padding(prose(f"Right to ignore: {entry.fine}"), (1, 2))


def prose(text: str) -> RenderableType:
    """The catalogue's text: Markdown, of which it uses backticks and paragraphs."""
    return Markdown(text, inline_code_theme="ansi_dark")


def example(title: str, source: str, colour: str) -> RenderableType:
    """One piece of code in its frame; a long line is folded, never cut."""
    code = Syntax(
        source.strip("\n"), "python", theme="ansi_dark", background_color="default", word_wrap=True
    )
    return Panel(code, title=title, title_align="left", border_style=colour)
