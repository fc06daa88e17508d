"""The pages of the catalogue for a terminal, with rich."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from handfast.catalogue import FAMILIES, HARMS, KINDS, BugKind


def contents() -> RenderableType:
    """Return a table of all codes, by family."""
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
    return Group(table, Text("`handfast explain CODE` shows one of them.", style="dim"))


def page(entry: BugKind) -> RenderableType:
    """Return the page of one kind: what it is, why it is bad, a wrong and a right example."""
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
        Padding(prose(f"Harm: {entry.harm} ({HARMS[entry.harm]})."), (0, 2, 1, 2)),
        example("wrong", entry.wrong, "red"),
        example("right", entry.right, "green"),
        *when_to_ignore(entry),
    )


def when_to_ignore(entry: BugKind) -> Iterator[RenderableType]:
    """When to ignore a finding, for kinds that have a rule."""
    if entry.when_to_ignore:
        yield Padding(prose(f"When to ignore it: {entry.when_to_ignore}"), (1, 2))


def prose(text: str) -> RenderableType:
    """Return text of the catalogue, which is Markdown with backticks and paragraphs."""
    return Markdown(text, inline_code_theme="ansi_dark")


def example(title: str, source: str, colour: str) -> RenderableType:
    """Return code in a frame; a long line is folded, not cut."""
    code = Syntax(
        source.strip("\n"), "python", theme="ansi_dark", background_color="default", word_wrap=True
    )
    return Panel(code, title=title, title_align="left", border_style=colour)
