"""`handfast explain HF101`: show a bug kind of the catalogue, or the list of all.

Without rich, a page is shown as plain text.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from handfast._check.output import page_url
from handfast._check.settings.selection import CHECKER_CODES
from handfast.catalogue import FAMILIES, HARMS, KINDS, BugKind, UnknownCode, kind
from handfast.cli.usage import note, out


def main(arguments: Sequence[str]) -> int:
    """Show what a bug kind is, why it is bad, and what to write instead."""
    parser = argparse.ArgumentParser(
        prog="handfast explain", usage="%(prog)s [CODE]", description=main.__doc__
    )
    parser.add_argument("code", nargs="?", metavar="CODE", help="a code or a name, such as HF101")
    code: str | None = parser.parse_args(arguments).code
    if code is None:
        _show(None)
    elif code.upper() in CHECKER_CODES:
        out("\n".join((code.upper(), *CHECKER_CODES[code.upper()])) + "\n")
    else:
        try:
            _show(kind(code))
        except UnknownCode as error:
            note(unknown(error))
            return 2
    return 0


def completions() -> list[str]:
    """Return the codes and the names, for the completion of a shell."""
    return [word for each in KINDS for word in (each.code, each.name)]


def _show(entry: BugKind | None) -> None:
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        out(plain_contents() if entry is None else plain_page(entry))
    else:
        from handfast.cli.rich_pages import contents, page

        Console().print(contents() if entry is None else page(entry))


def unknown(error: UnknownCode) -> str:
    """Return the message for an unknown code, with similar ones."""
    lines = [f"handfast: no bug kind is called {error.code!r}."]
    if error.near:
        lines += ["Did you mean:", *(f"  {near.code}  {near.name}" for near in error.near)]
    lines.append("`handfast explain` lists all of them.")
    return "\n".join(lines)


def plain_contents() -> str:
    """Return the list of all codes, by family."""
    rows: list[str] = []
    for prefix, family in FAMILIES.items():
        rows.append(f"{prefix}xx  {family}")
        kinds = (each for each in KINDS if each.code.startswith(prefix))
        rows += [f"{each.code}  {each.name}: {each.summary}" for each in kinds]
    return "\n".join((*rows, "`handfast explain CODE` shows one of them.", ""))


def harm(entry: BugKind) -> str:
    """Return what the bug does to a program, as a sentence."""
    return f"Harm: {entry.harm} ({HARMS[entry.harm]})."


def plain_page(entry: BugKind) -> str:
    """Return the page of one kind."""
    ignore = entry.when_to_ignore and f"When to ignore it: {entry.when_to_ignore}\n\n"
    return (
        f"{entry.code} {entry.name} ({entry.family})\n\n{entry.summary}\n\n{entry.why}\n\n{harm(entry)}\n\n"
        f"Wrong:\n\n{entry.wrong}\nRight:\n\n{entry.right}\n{ignore}{page_url(entry.code)}\n"
    )
