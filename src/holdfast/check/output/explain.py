"""What the codes of the checker itself mean, and how a kind is seen to happen. All else that there is
to say about a code, the catalogue says.
"""

from __future__ import annotations

from holdfast.catalogue import kind
from holdfast.check.selection import BROKEN, UNUSED_NOQA

__all__ = ["own", "shown_by"]

_PAGES = {
    BROKEN: """\
HF000 file-not-checked

A file could not be read or parsed, so nothing is known about it. The message says why: a syntax
error of the Python that runs holdfast, an encoding that is not the declared one, no right to read
it. Mend the file, or leave it out with `exclude` in [tool.holdfast.check].
""",
    UNUSED_NOQA: """\
HF001 noqa-unused

A comment names one of our codes, and there is nothing that it takes back: the bug was mended, or
the line moved. It would hide the next one. `holdfast check --fix` removes it.
""",
}


def own(code: str) -> str:
    """The page of one of the checker's own codes; empty for all others."""
    return _PAGES.get(code.strip().upper(), "")


def shown_by(code: str) -> str:
    """The line of pytest that shows a bug of this kind, in a test of the function; mostly empty."""
    from holdfast.check.show import in_general

    line = in_general(kind(code).code)
    if not line:
        return ""
    where = "above the test" if line.startswith("@") else "on the command line"
    return f"  Seen to happen in an async test of the function, with this {where}:\n    {line}\n"
