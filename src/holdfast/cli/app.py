"""The command line put together: what is asked for goes to the file of that command.

No command's work is done here.
"""

from typing import Annotated

import typer

from holdfast.cli import explain, explore, stress, tour, version

__all__ = ["app"]

app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with every local variable of an event loop hides the error it shows.
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("tour")(tour.tour)
app.command("explain")(explain.explain)
app.command("explore", cls=explore.Command)(explore.explore)
app.command("stress")(stress.stress)


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
