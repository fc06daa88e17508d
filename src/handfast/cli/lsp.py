"""`handfast lsp`: the language server, for editors; `handfast._lsp` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from handfast._missing_extra import install_line
from handfast.cli.usage import usage_error

__all__ = ["lsp"]


def lsp(
    _stdio: Annotated[
        bool, typer.Option("--stdio", help="The default, and the only way; some editors pass it.")
    ] = False,
) -> None:
    """Run the language server, which shows the findings of `check` in an editor.

    It is started by the editor, and talks to it over standard input and output.
    """
    try:
        from handfast._lsp.server import serve
    except ModuleNotFoundError as error:
        # Any other missing module is a bug in handfast, and is raised.
        if (error.name or "").partition(".")[0] not in {"pygls", "lsprotocol"}:
            raise
        usage_error(f"the language server needs pygls 2: {install_line('lsp')}")
    serve()
