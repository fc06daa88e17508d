"""`holdfast --version`: which holdfast, on which Python.

The number itself stands in one place, `holdfast.__version__`; the distribution takes it from there.
"""

import platform

import typer

import holdfast

__all__ = ["line", "show"]


def line() -> str:
    """What `--version` prints."""
    python = f"Python {platform.python_version()} on {platform.system()}"
    return f"holdfast {holdfast.__version__}, {python}"


def show(asked: bool) -> None:
    """Print it and leave, if it was asked for."""
    if asked:
        from rich.console import Console  # only who asks pays for it

        Console(highlight=False).print(line(), soft_wrap=True)
        raise typer.Exit
