"""The `holdfast` command: the door only. `app` puts it together, and each command has its own file.

Nothing here needs rich or typer, so that the command can say which extra brings them.
"""

import sys

__all__ = ["main"]

MISSING = 'holdfast: the command line needs rich and typer: pip install "holdfast[cli]"'


def main() -> None:
    """Run the command line; the script `holdfast` and `python -m holdfast` both come here."""
    try:
        from holdfast.cli.app import app

        app()
    except ModuleNotFoundError as error:
        # Only what the extra brings: any other missing module is a fault of ours, and must show.
        if (error.name or "").partition(".")[0] not in {"rich", "typer"}:
            raise
        sys.stderr.write(f"{MISSING}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # it came before typer was there to hear it
        raise SystemExit(130) from None
