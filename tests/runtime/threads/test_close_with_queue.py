"""A9: a close is in time, however many calls wait in the queue."""

from __future__ import annotations

import threading

import pytest

from handfast import BackgroundLoop
from handfast.errors import ScopeClosed
from tests.support.stepping import new_loop

CALLS = 50_000


async def echo(n: int) -> int:
    return n


def test_a_close_with_50_000_calls_in_the_queue_is_in_time(kind: str) -> None:
    """Each of them gets an answer, and one text serves for all refusals."""
    gate, blocked = threading.Event(), threading.Event()

    async def block() -> None:
        blocked.set()
        gate.wait()

    background = BackgroundLoop("queue", loop_factory=lambda: new_loop(kind))
    background.submit(block)
    blocked.wait()
    calls = [background.submit(echo, n) for n in range(CALLS)]
    threading.Timer(0.01, gate.set).start()
    assert background.close(timeout=5.0).clean
    assert background.closed
    assert all(call.done() for call in calls)
    with pytest.raises(ScopeClosed, match=r"submit\(echo\) refused"):
        calls[-1].result()
    refused = [error for call in calls[-2:] if (error := call.exception())]
    assert len({id(error) for error in refused}) == 2  # each has a traceback of its own
