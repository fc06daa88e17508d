"""A line of code in words: what is left of an `Origin` once it has left its process.

A code object cannot travel; the file, the line and the text of the line can.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.origin import Origin

__all__ = ["Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code. It reads like the origin that it was made from.

    >>> here = Origin.here()
    >>> str(Place.of(here)) == str(here)
    True
    """

    text: str
    """As the origin was shown where it was."""
    filename: str
    lineno: int
    function: str
    source: str = ""

    @classmethod
    def of(cls, origin: Origin | Place) -> Place:
        """The same line, without the code object."""
        return cls(str(origin), origin.filename, origin.lineno, origin.function, origin.source)

    def __str__(self) -> str:
        return self.text
