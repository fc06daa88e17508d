"""A small plot of a growth, in plain text: braille dots, or stars where those cannot be printed.

Only drawing: which series are worth it is decided elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from holdfast.leaks.trend import Sample

__all__ = ["can_draw", "plot"]

# A braille character is two dots wide and four high; this is the bit of each, from the top left.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BRAILLE = 0x2800


def can_draw(stream: TextIO | None = None) -> bool:
    """Whether a stream can print braille."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "ascii"
    try:
        "\u28ff\u2524\u2514\u2500".encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


def plot(
    samples: Sequence[Sample], *, width: int = 40, height: int = 4, braille: bool = True
) -> list[str]:
    """The lines of a plot, `width` characters by `height` beside the figures.

    >>> print("\\n".join(plot([(0, 0), (500, 40), (1000, 100)], width=12, braille=False)))
    100 |          **
        |       ***
        |   ****
      0 |***
        +------------
         0 ... 1,000 runs
    """
    low, high = min(y for _, y in samples), max(y for _, y in samples)
    rows = _braille(samples, width, height) if braille else _stars(samples, width, height)
    figures = [f"{high:,.0f}", *[""] * (height - 2), f"{low:,.0f}"]
    margin = max(map(len, figures))
    wall, corner, floor = "┤└─" if braille else "|+-"
    drawn = [f"{figure:>{margin}} {wall}{row}" for figure, row in zip(figures, rows, strict=True)]
    return [
        *(line.rstrip() for line in drawn),
        f"{'':>{margin}} {corner}{floor * width}",
        f"{'':>{margin}}  {samples[0][0]:,.0f} ... {samples[-1][0]:,.0f} runs",
    ]


def _stars(samples: Sequence[Sample], width: int, height: int) -> list[str]:
    heights = list(_heights(samples, width, height))
    return ["".join("*" if at == row else " " for at in heights) for row in reversed(range(height))]


def _braille(samples: Sequence[Sample], width: int, height: int) -> list[str]:
    cells = [[_BRAILLE] * width for _ in range(height)]
    for column, at in enumerate(_heights(samples, 2 * width, 4 * height)):
        from_top = 4 * height - 1 - at
        cells[from_top // 4][column // 2] |= _DOTS[from_top % 4][column % 2]
    return ["".join(map(chr, row)) for row in cells]


def _heights(samples: Sequence[Sample], columns: int, rows: int) -> Iterator[int]:
    """For each column, the row of the line through the samples, counted from below."""
    low, high = min(y for _, y in samples), max(y for _, y in samples)
    scale = (rows - 1) / (high - low) if high > low else 0.0
    begin, end = samples[0][0], samples[-1][0]
    for column in range(columns):
        x = begin + (end - begin) * column / max(1, columns - 1)
        yield round((_between(samples, x) - low) * scale)


def _between(samples: Sequence[Sample], x: float) -> float:
    """What was there at `x`, on the straight line between the samples beside it."""
    (x1, y1) = samples[0]
    for x2, y2 in samples[1:]:
        if x <= x2:
            return y1 + (y2 - y1) * (x - x1) / (x2 - x1)
        x1, y1 = x2, y2
    return y1
