"""Programs for `explore`: a restart during a request, a noisy child, and much output at the end.

The child is simulated. Its exit and the end of its output arrive separately, in either order.
"""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Protocol

from examples.child import as_proposed as proposed
from examples.child import as_reported as reported
from examples.child import fixed as fixed_version
from examples.child.messages import ChildExit, ChildGone, Message
from handfast import scripted

__all__ = [
    "NOISE",
    "SAVES",
    "AnyCompanion",
    "Children",
    "as_proposed",
    "as_reported",
    "fixed",
    "much_output_at_the_end",
    "noisy",
    "noisy_as_reported",
    "restarted_during_request",
]

# More than a pipe and a reader's buffer hold together.
_MUCH = 300_000
NOISE = scripted.Errs(b"\xff\xfe\0\n", whole=True), scripted.Errs(b"\0" * _MUCH + b"\n", whole=True)
SAVES = (
    scripted.Errs(b"a line to save\n" * (_MUCH // 15), whole=True),
    scripted.Errs(b"saved\n", whole=True),
)


class AnyCompanion(Protocol):
    """The interface of the three versions."""

    def __init__(self, *argv: str, grace: float = 5.0) -> None: ...
    async def send(self, message: Message) -> Message: ...
    async def restart(self) -> None: ...
    async def close(self) -> ChildExit | None: ...


class Children:
    """Children that answer each line. On SIGTERM a child waits, writes `at_the_end`, and exits."""

    def __init__(self, *at_the_end: scripted.Errs, noise: tuple[scripted.Errs, ...] = ()) -> None:
        self.started = 0
        self._end = scripted.On(
            signal.SIGTERM, scripted.Waits(0.05), *at_the_end, scripted.Exits(0)
        )
        self._noise = noise
        scripted.child("companion", self._script)

    def _script(
        self, argv: tuple[str, ...]
    ) -> tuple[scripted.On | scripted.Hears | scripted.Errs, ...]:
        self.started += 1
        return self._end, scripted.Hears(_answer), *self._noise, scripted.Hears(_answer, lines=None)


def _answer(line: bytes) -> bytes:
    return json.dumps({"session": "one", "query": json.loads(line)}).encode() + b"\n"


async def restarted_during_request(kind: type[AnyCompanion]) -> None:
    """The child is restarted. A moment later comes a request, which is repeated if the child is gone."""
    children = Children()
    companion = kind("companion")
    try:
        await companion.send({"do": "begin"})
        async with asyncio.TaskGroup() as group:
            restart = group.create_task(companion.restart())
            request = group.create_task(_request(companion))
    except asyncio.CancelledError:
        await companion.close()
        raise
    if not (
        restart.cancelled() or request.cancelled()
    ):  # else a child was ended, and another started
        started = children.started
        assert started == 2, f"{started} children were started, and one is tracked"
    await companion.close()


async def _request(companion: AnyCompanion) -> None:
    await asyncio.sleep(0.06)
    while True:
        try:
            await companion.send({"do": "echo"})
        except ChildGone:
            continue
        return


async def much_output_at_the_end(kind: type[AnyCompanion]) -> None:
    """On SIGTERM, the child writes more than a pipe holds."""
    Children(*SAVES)
    companion = kind("companion", grace=1.0)
    try:
        await companion.send({"do": "begin"})
    finally:
        child_exit = await companion.close()
    assert child_exit is not None
    assert (child_exit.status.ok, child_exit.last_line) == (True, "saved"), str(child_exit)


async def noisy(kind: type[AnyCompanion]) -> None:
    """Before it reads the second request, the child writes binary data and a very long line."""
    Children(noise=NOISE)
    companion = kind("companion")
    try:
        await companion.send({"do": "begin"})
        await companion.send({"do": "echo"})
    finally:
        await companion.close()


async def as_reported() -> None:
    await restarted_during_request(reported.Companion)


async def noisy_as_reported() -> None:
    await noisy(reported.Companion)


async def as_proposed() -> None:
    await much_output_at_the_end(proposed.Companion)


async def fixed() -> None:
    await restarted_during_request(fixed_version.Companion)
    await much_output_at_the_end(fixed_version.Companion)
