"""How findings are shown. Every module of this folder is a format, with a function of its name.

concise   one line for each finding
github    annotations of GitHub Actions
gitlab    a Code Quality report of GitLab
grouped   the findings of each file below its name
json      for other programs
junit     JUnit XML, for CI servers
sarif     SARIF 2.1.0, for code scanning
text      the source with the places marked, for a terminal
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from handfast._check.report import Report

__all__ = ["FORMATS", "explain_line", "page_url", "printable", "render"]

FORMATS = tuple(sorted(module.name for module in iter_modules(__path__)))
"""The values of `--output-format`."""


def render(
    report: Report, form: str, *, version: str, colour: bool = False, quiet: bool = False
) -> str:
    """Return the report in a format; `version` is that of handfast.

    With `quiet`, a format for people has no summary.
    """
    # Imported here: a run needs only one of them.
    function = getattr(import_module(f"{__name__}.{form}"), form)
    return str(function(report, version=version, colour=colour, quiet=quiet))


@cache
def page_url(code: str) -> str:
    """Return the URL of the catalogue page of a code; empty if it has none.

    It is the page in the installed package, which is always that of this version, so it is for
    programs and terminals of this machine; `explain_line` is for all others.
    """
    from handfast import catalogue

    page = Path(catalogue.__file__).with_name("pages") / f"{code}.md"
    return page.absolute().as_uri() if page.exists() else ""


def explain_line(code: str) -> str:
    """Return the command that shows the page of a code, for reports that leave this machine.

    >>> explain_line("HF101")
    'handfast rule HF101'
    """
    return f"handfast rule {code}"


def printable(text: str) -> str:
    r"""Return a text on one line, with control characters as escapes: it may come from a file name.

    >>> printable("a\n::error::b\x1b[2J")
    'a\\n::error::b\\x1b[2J'
    """
    if text.isprintable():
        return text
    escaped = (
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
    return "".join(escaped)
