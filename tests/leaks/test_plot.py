"""The plot of a growth: small, true to the figures, and in plain ASCII where it must be."""

from __future__ import annotations

import io

from holdfast.leaks.plot import can_draw, plot

LINE = [(float(runs), float(runs)) for runs in range(0, 1001, 50)]


def stream(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


def test_a_straight_line_goes_from_corner_to_corner() -> None:
    *rows, floor, figures = plot(LINE, width=8, height=4, braille=False)
    assert rows == ["1,000 |      **", "      |    **", "      |  **", "    0 |**"]
    assert floor == "      +--------"
    assert figures == "       0 ... 1,000 runs"


def test_braille_has_eight_dots_in_a_character() -> None:
    top, bottom, *_ = plot(LINE, width=4, height=2)
    assert top == "1,000 ┤\u2800\u2800⡠⠊"
    assert bottom == "    0 ┤⡠⠊\u2800\u2800"


def test_what_stays_is_a_flat_line_and_one_sample_is_enough() -> None:
    assert plot([(0, 5), (10, 5)], width=3, height=2, braille=False)[1] == "5 |***"
    assert plot([(0, 5)], width=3, height=2, braille=False)[1] == "5 |***"


def test_braille_is_for_streams_that_can_print_it() -> None:
    assert can_draw(stream("utf-8"))
    assert not can_draw(stream("ascii"))
    assert not can_draw(stream("cp1252"))
    assert not can_draw(io.StringIO())  # nobody knows where that goes
