"""Bouts: operations on slots that are started in given turns of the loop, under watch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from holdfast import CloseReport, Scope, ScopeClosed, SlotBusy, SlotCancelled, Slots
from tests.runtime.workshop import Workshop, turns
from tests.stepping import Stepping

KEYS = ("a", "b")


class Move(NamedTuple):
    """One operation, so many turns after the one before it. "leave" cancels the caller of an
    earlier move: the one whose number it has."""

    after: int
    what: str
    kind: str = "idle"
    key: str = "a"
    number: int = 0


class Bout:
    """What came of a bout."""

    def __init__(self, slots: Slots, shop: Workshop, failures: list[BaseException]) -> None:
        self.slots = slots
        self.shop = shop
        self.failures = failures
        self.callers: list[asyncio.Task[Any]] = []
        self.holders: list[int] = []  # who was there before all was closed
        self.report = CloseReport("")

    def outcomes(self) -> list[object]:
        """Of each caller: what it got, or the error that it got."""
        return [
            asyncio.CancelledError() if each.cancelled() else each.exception() or each.result()
            for each in self.callers
        ]


# What may come of an operation beside success, when others have a hand in it.
REFUSALS = (SlotBusy, SlotCancelled, ScopeClosed, asyncio.CancelledError, ValueError, OSError)


async def fight(stepping: Stepping, moves: Iterable[Move], *, eager: bool = False) -> Bout:
    """Make the moves, let the dust settle, close; the watch is kept all the time."""
    if eager:
        stepping.loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009
    failures: list[BaseException] = []
    scope = Scope("ring", on_failure=failures.append)
    slots = Slots(scope)
    shop = Workshop(slots, lambda: scope.tasks, KEYS)
    bout = Bout(slots, shop, failures)
    stepping.at_each_step(shop.check)
    for move in moves:
        await turns(move.after)
        if move.what == "leave":
            bout.callers[move.number].cancel()
        else:
            bout.callers.append(asyncio.create_task(perform(slots, shop, move)))
    await asyncio.sleep(1)  # until nothing moves any more: the time is virtual
    bout.holders = [run.number for run in shop.live()]
    bout.report = await slots.close()
    await asyncio.wait(bout.callers)
    left = await scope.close()
    if left.finished or left.cancelled or left.failed or left.stragglers:
        shop.violations.append(f"the slots were closed, and the scope had: {left}")
    for outcome in bout.outcomes():
        if isinstance(outcome, BaseException) and not isinstance(outcome, REFUSALS):
            raise outcome
    shop.violations.extend(remains(slots))
    return bout


async def perform(slots: Slots, shop: Workshop, move: Move) -> Any:
    """One move. What it gives is the number of a run, if any."""
    work = shop.worker(move.kind)
    if move.what == "replace":
        task = await slots.replace(move.key, work, move.key)
        shop.replaced_by(task)
        return shop.run_of(task).number
    if move.what == "queue":
        return shop.run_of(await slots.queue(move.key, work, move.key)).number
    if move.what == "reject":
        return shop.run_of(slots.reject(move.key, work, move.key)).number
    if move.what == "keep":
        return await slots.keep(move.key, work, move.key)
    if move.what == "cancel":
        return await slots.cancel(move.key)
    assert move.what == "close"
    return await slots.close()


def remains(slots: Slots) -> list[str]:
    """What the books still hold, of whatever kind, when everything has ended."""
    books = {
        "entries": slots._entries,
        "onlookers": slots._onlookers,
        "replacers": slots._replacers,
        "queues": slots._queues,
        "live": slots._roster.live,
        "asked": slots._roster.asked,
        "wrappers": slots._roster.wrappers,
    }
    return [f"left in the books: {name}: {book}" for name, book in books.items() if book]
