"""The sparkline of a growth, with plain ASCII where a stream cannot print blocks."""

from __future__ import annotations

import io

from handfast._leaks.stress.report import can_encode_blocks, sparkline

LINE = [(float(runs), float(runs)) for runs in range(0, 1001, 100)]


def stream(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


def test_a_sparkline_has_one_character_for_each_sample() -> None:
    assert sparkline(LINE) == "0 ▁▁▂▃▃▄▅▅▆▇█ 1,000  (0 ... 1,000 runs)"


def test_a_constant_is_a_flat_line_and_one_sample_is_enough() -> None:
    assert sparkline([(0, 5), (10, 5)], unicode=False) == "5 __ 5  (0 ... 10 runs)"
    assert sparkline([(0, 5)]) == "5 ▁ 5  (0 ... 0 runs)"


def test_blocks_are_for_streams_that_can_encode_them() -> None:
    assert can_encode_blocks(stream("utf-8"))
    assert not can_encode_blocks(stream("ascii"))
    assert not can_encode_blocks(stream("cp1252"))
    assert not can_encode_blocks(io.StringIO())  # its encoding is unknown
