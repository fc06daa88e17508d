"""A child that is restarted while it is asked, that is noisy, that has much to say when it ends.

The child has a twin: when its exit and the end of its output arrive is a choice, and they are two.
"""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Protocol

from holdfast import explore
from holdfast.casebook.child import as_it_should_be as should_be
from holdfast.casebook.child import as_proposed as proposed
from holdfast.casebook.child import as_reported as reported
from holdfast.casebook.child.farewell import ChildGone, Farewell, Message

__all__ = [
    "Talks",
    "as_it_should_be",
    "as_proposed",
    "as_reported",
    "full_of_last_words",
    "noisy",
    "noisy_as_reported",
    "restarted_while_asked",
]

# More than a pipe and the buffer of a reader hold between them.
_MUCH = 300_000
_NOISE = explore.Errs(b"\xff\xfe\0\n", whole=True), explore.Errs(b"\0" * _MUCH + b"\n", whole=True)
_TO_SAVE = explore.Errs(b"a line to save\n" * (_MUCH // 15), whole=True)
_SAVED = explore.Errs(b"saved\n", whole=True)


class Talks(Protocol):
    """What the three versions have in common."""

    def __init__(self, *argv: str, grace: float = 5.0) -> None: ...
    async def send(self, message: Message) -> Message: ...
    async def restart(self) -> None: ...
    async def close(self) -> Farewell | None: ...


class _Children:
    """They answer each line. Told to end, one tidies up for a moment, says its last words, and goes."""

    def __init__(self, *last_words: explore.Errs, noise: tuple[explore.Errs, ...] = ()) -> None:
        self.started = 0
        self._end = explore.On(signal.SIGTERM, explore.Waits(0.05), *last_words, explore.Exits(0))
        self._noise = noise
        explore.child("companion", self._script)

    def _script(
        self, argv: tuple[str, ...]
    ) -> tuple[explore.On | explore.Hears | explore.Errs, ...]:
        self.started += 1
        return self._end, explore.Hears(_answer), *self._noise, explore.Hears(_answer, lines=None)


def _answer(line: bytes) -> bytes:
    return json.dumps({"session": "one", "asked": json.loads(line)}).encode() + b"\n"


async def restarted_while_asked(kind: type[Talks]) -> None:
    """It is restarted; a moment later somebody asks it, and asks again if it is gone."""
    children = _Children()
    companion = kind("companion")
    await companion.send({"do": "begin"})
    await asyncio.gather(companion.restart(), _asked(companion))
    assert children.started == 2, f"{children.started} were started, and one is tracked"
    await companion.close()


async def _asked(companion: Talks) -> None:
    await asyncio.sleep(0.06)
    while True:
        try:
            await companion.send({"do": "echo"})
        except ChildGone:
            continue
        return


async def full_of_last_words(kind: type[Talks]) -> None:
    """Told to end, it writes more than a pipe holds."""
    _Children(_TO_SAVE, _SAVED)
    companion = kind("companion", grace=1.0)
    await companion.send({"do": "begin"})
    farewell = await companion.close()
    assert farewell is not None
    assert (farewell.status.ok, farewell.last_line) == (True, "saved"), str(farewell)


async def noisy(kind: type[Talks]) -> None:
    """It writes what is no text, and a line of any length, before it hears the second question."""
    _Children(noise=_NOISE)
    companion = kind("companion")
    await companion.send({"do": "begin"})
    await companion.send({"do": "echo"})
    await companion.close()


async def as_reported() -> None:
    await restarted_while_asked(reported.Companion)


async def noisy_as_reported() -> None:
    await noisy(reported.Companion)


async def as_proposed() -> None:
    await full_of_last_words(proposed.Companion)


async def as_it_should_be() -> None:
    await restarted_while_asked(should_be.Companion)
    await full_of_last_words(should_be.Companion)
