"""What a person reads after a close."""

from __future__ import annotations

import pytest

import handfast
from handfast.types import CloseReport, Origin, Straggler, TaskEnd


def test_an_empty_report_is_clean_and_raises_nothing() -> None:
    report = CloseReport("s")
    assert report.clean
    report.raise_if_unclean()
    assert str(report) == "scope 's' closed: nothing was running"


def test_each_part_of_a_report_is_shown_with_its_origin() -> None:
    origin = Origin.here()
    report = CloseReport(
        "bot",
        finished=(TaskEnd("a", origin),),
        cancelled=(TaskEnd("b", None),),
        failed=(TaskEnd("c", origin, ValueError("boom")),),
        cleanup_errors=(OSError("disk"),),
        stragglers=(Straggler("d", origin, 3.21, ("outer.py:1 in f", "inner.py:2 in g")),),
    )
    text = str(report)
    assert text.splitlines()[0] == (
        "scope 'bot' closed: 1 finished, 1 cancelled, 1 failed, 1 clean-up errors, 1 still running"
    )
    assert f"failed: c, created at {origin}: ValueError('boom')" in text
    assert "clean-up error: OSError('disk')" in text
    assert f"still running: d (3.2 s old, created at {origin}, waiting at inner.py:2 in g)" in text
    assert not report.clean


def test_a_report_of_very_many_stays_readable() -> None:
    report = CloseReport(
        "s", failed=tuple(TaskEnd(f"t{n}", None, KeyError(n)) for n in range(5000))
    )
    assert len(str(report).splitlines()) == 12
    assert str(report).endswith("failed: ... and 4990 more")


def test_raise_if_unclean_keeps_everything_and_sorts_it_by_phase() -> None:
    boom, disk = ValueError("boom"), OSError("disk")
    report = CloseReport(
        "s",
        failed=(TaskEnd("a", None, boom),),
        cleanup_errors=(disk,),
        stragglers=(Straggler("b", None, 1.0, ()),),
    )
    with pytest.raises(ExceptionGroup, match="scope 's' did not close cleanly") as caught:
        report.raise_if_unclean()
    failure = handfast.split_errors(caught.value)
    assert failure.operational == (boom,)
    assert failure.cleanup[0] is disk
    assert str(failure.cleanup[1]) == "b (1.0 s old)"


def test_a_report_keeps_no_task_alive() -> None:
    assert "task" not in TaskEnd._fields
    assert "task" not in Straggler._fields


def test_a_base_exception_among_the_failures_makes_a_base_group() -> None:
    report = CloseReport("s", failed=(TaskEnd("a", None, KeyboardInterrupt()),))
    with pytest.raises(BaseExceptionGroup) as caught:
        report.raise_if_unclean()
    assert not isinstance(caught.value, ExceptionGroup)
