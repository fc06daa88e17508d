"""Reports, errors and the other values can be pickled and copied, and say the same afterwards."""

from __future__ import annotations

import asyncio
import copy
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import handfast
from handfast import Restart, Scope, errors, split_errors, types
from handfast._origin import Origin
from handfast.types import (
    CancelReason,
    CloseReport,
    Coverage,
    ExitStatus,
    Failure,
    Outcome,
    ProcessResult,
    Straggler,
    TaskEnd,
)

HERE = Origin.here()
RESULT = ProcessResult(ExitStatus(None, signal.SIGTERM), b"out", b"err")

COPIES: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    *(
        lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    ),
]

VALUES = [
    CancelReason("close()", HERE),
    CloseReport(
        "bot",
        finished=(TaskEnd("a", HERE),),
        cancelled=(TaskEnd("b", None, None, CancelReason("close()", HERE)),),
        closed_at=HERE,
        stragglers=(Straggler("c", HERE, 1.5, ("app.py:1 in main",)),),
    ),
    Coverage(points_seen=3),
    ExitStatus(3, None),
    Failure((), ()),
    HERE,
    Outcome(4, value=2.0),
    RESULT,
    Straggler("c", HERE, 1.5, ("app.py:1 in main",)),
    TaskEnd("a", HERE),
]

# Live objects: a stream, the output of a running process, a task of the explorer.
LIVE = {"Pipe", "Stream", "Victim"}


def test_the_list_has_every_public_type() -> None:
    assert {type(value).__name__ for value in VALUES} | LIVE == set(types.__all__)


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("value", [*VALUES, Restart()], ids=lambda value: type(value).__name__)
def test_a_value_is_equal_to_its_copy(value: object, copied: Callable[[Any], Any]) -> None:
    duplicate = copied(value)
    assert duplicate == value
    assert str(duplicate) == str(value)


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_keeps_its_text_its_attributes_and_its_notes(
    name: str, copied: Callable[[Any], Any]
) -> None:
    kind = getattr(errors, name)
    args = ("close", [OSError("disk")]) if issubclass(kind, ExceptionGroup) else ("too late",)
    error = kind(*args)
    error.add_note("in task 'a'")
    if name in ("ProcessFailed", "ProcessTimeout"):
        error.result = RESULT
    if name == "OutputDropped":
        error.dropped = 5
    duplicate = copied(error)
    assert type(duplicate) is kind
    assert (str(duplicate), duplicate.__notes__) == (str(error), error.__notes__)
    assert getattr(duplicate, "result", None) == getattr(error, "result", None)
    assert getattr(duplicate, "dropped", None) == getattr(error, "dropped", None)


@pytest.mark.parametrize("copied", COPIES)
def test_the_copy_of_an_origin_shows_the_same_line(copied: Callable[[Any], Any]) -> None:
    duplicate = copied(copied(HERE))
    assert (duplicate.filename, duplicate.function, duplicate.lineno) == (
        __file__,
        "<module>",
        HERE.lineno,
    )
    assert duplicate.source == "HERE = Origin.here()"
    assert len({duplicate, HERE}) == 1
    assert duplicate != Origin.here()


async def _closed() -> tuple[CloseReport, ValueError]:
    """A report with an error of each phase, and an error that was awaited."""

    async def work() -> None:
        await asyncio.Event().wait()

    async def clean_up() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("disk")

    async def fail() -> None:
        raise ValueError("boom")

    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    scope = Scope("bot")
    scope.spawn(work())
    scope.spawn(clean_up())
    failing = scope.spawn(fail())
    with pytest.raises(ValueError, match="boom") as caught:
        await failing
    return await scope.close(), caught.value


@pytest.mark.parametrize("copied", COPIES)
def test_the_report_of_a_close_keeps_the_phase_of_its_errors(copied: Callable[[Any], Any]) -> None:
    report, boom = asyncio.run(_closed())
    duplicate = copied(report)
    assert str(duplicate) == str(report)
    assert repr(duplicate) == repr(report)
    group = ExceptionGroup("both", [*duplicate.cleanup_errors, copied(boom)])
    failure = split_errors(group)
    assert repr(failure) == "Failure(operational=(ValueError('boom'),), cleanup=(OSError('disk'),))"


def test_an_error_that_was_pickled_can_be_read_where_handfast_is_not_installed() -> None:
    report, boom = asyncio.run(_closed())
    sent = pickle.dumps([boom, *report.cleanup_errors])
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer), 'handfast' in sys.modules)"
    reader = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], input=sent, capture_output=True
    )
    assert reader.stderr == b""
    assert reader.stdout.split(b"\n")[0] == b"[ValueError('boom'), OSError('disk')] False"


def test_a_copy_of_an_error_is_another_error() -> None:
    reported: list[BaseException | None] = []

    async def fail(error: Exception) -> None:
        raise error

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: reported.append(context.get("exception")))
        async with Scope(on_failure="report") as scope:
            error = ValueError("boom")
            scope.spawn(fail(error))
            scope.spawn(fail(error))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            scope.spawn(fail(copy.copy(error)))

    handfast.run(main)
    assert [repr(error) for error in reported] == [
        "ValueError('boom')",
        "None",
        "ValueError('boom')",
    ]
