"""What the codes of the checker itself mean; all others are the catalogue's."""

from __future__ import annotations

from holdfast.check.selection import BROKEN, UNUSED_NOQA

__all__ = ["own"]

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
