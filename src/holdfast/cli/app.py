"""The command line put together: what is asked for goes to the file of that command.

No command's work is done here, and only the command that is asked for is loaded: `check` has to
be back before the others' imports would be done.
"""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from holdfast.cli import version

__all__ = ["app"]

_COMMANDS = ("tour", "explain", "check", "explore", "stress")
"""The commands in the order of the help; each is the function of that name in its own file."""


class _Commands(TyperGroup):
    """Loads a command when it is asked for."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        # Who mistypes is shown the nearest of these.
        self.commands = dict.fromkeys(_COMMANDS, self)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"holdfast.cli.{cmd_name}")
        alone = typer.Typer(add_completion=False)
        # A command may bring its own way to read the command line.
        alone.command(cmd_name, cls=getattr(module, "Command", None))(getattr(module, cmd_name))
        return typer.main.get_command(alone)


app = typer.Typer(
    name="holdfast",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    # A traceback with every local variable of an event loop hides the error it shows.
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def holdfast(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and leave.",
            callback=version.show,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """What every asyncio task holds on to: owners, and closings that tell the truth."""
