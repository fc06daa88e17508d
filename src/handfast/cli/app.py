"""The `handfast` command with its subcommands.

A subcommand is the function in this folder that has the name of its file. It is imported only
when it is used: `check` is to be done before the imports of the others would be.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import handfast.cli
from handfast.cli import PLAIN, version_line

_NOT_COMMANDS = {"app", "check_options", "progress", "rich_pages", "target", "usage", "watched"}
_COMMANDS = tuple(
    module.name
    for module in iter_modules(handfast.cli.__path__)
    if module.name not in _NOT_COMMANDS
)


class _Plain(TyperCommand):
    """A command that parses its arguments itself."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete with the words that the module of the command lists."""
        words: list[str] = import_module(f"handfast.cli.{self.name}").completions()
        return _items(words, incomplete)


class _Commands(TyperGroup):
    """Imports a subcommand when it is used."""

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete the names of the commands without their help, which would import all of them."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return _items(_COMMANDS, incomplete)

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        # typer suggests one of these names for a misspelled one.
        self.commands = dict.fromkeys(_COMMANDS, self)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"handfast.cli.{cmd_name}")
        single = typer.Typer(add_completion=False)
        if cmd_name in PLAIN:

            def run(ctx: typer.Context) -> None:
                raise typer.Exit(module.main(ctx.args))

            single.command(cmd_name, cls=_Plain, help=module.main.__doc__)(run)
            return typer.main.get_command(single)
        # A subcommand may bring a class that parses its arguments.
        single.command(cmd_name, cls=getattr(module, "Command", None))(getattr(module, cmd_name))
        return typer.main.get_command(single)


@dataclass
class _Word:
    """A completion. The class of click and typer has moved from release to release."""

    value: str
    type: str = "plain"
    help: str | None = None


def _items(words: Iterable[str], incomplete: str) -> list[_Word]:
    return [_Word(each) for each in words if each.startswith(incomplete)]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_line())
        raise typer.Exit


app = typer.Typer(
    name="handfast",
    cls=_Commands,
    no_args_is_help=True,
    # A traceback with every local variable of an event loop hides the error it shows.
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def handfast_command(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Find and prevent asyncio lifetime bugs: leaked tasks, lost cancellations, shutdown races."""
