"""Bouts: operations on keyed tasks that are started in given turns of the loop, under watch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from handfast import KeyedTasks, Scope
from handfast.errors import KeyBusy, KeyCancelled, ScopeClosed
from handfast.types import CloseReport
from tests.runtime.scope.workshop import Workshop, turns
from tests.support.failures import errors_into
from tests.support.stepping import Stepping

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

    def __init__(self, keyed: KeyedTasks, shop: Workshop, failures: list[BaseException]) -> None:
        self.keyed = keyed
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
REFUSALS = (KeyBusy, KeyCancelled, ScopeClosed, asyncio.CancelledError, ValueError, OSError)


async def fight(stepping: Stepping, moves: Iterable[Move], *, eager: bool = False) -> Bout:
    """Make the moves, let the dust settle, close; the watch is kept all the time."""
    if eager:
        stepping.loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009
    failures: list[BaseException] = []
    scope = Scope("ring", on_failure=errors_into(failures))
    keyed = KeyedTasks(scope)
    shop = Workshop(keyed, lambda: scope.tasks, KEYS)
    bout = Bout(keyed, shop, failures)
    stepping.at_each_step(shop.check)
    for move in moves:
        await turns(move.after)
        if move.what == "leave":
            bout.callers[move.number].cancel()
        else:
            bout.callers.append(asyncio.create_task(perform(keyed, shop, move)))
    await asyncio.sleep(1)  # until nothing moves any more: the time is virtual
    bout.holders = [run.number for run in shop.live()]
    bout.report = await keyed.close()
    await asyncio.wait(bout.callers)
    left = await scope.close()
    if left.finished or left.cancelled or left.failed or left.stragglers:
        shop.violations.append(f"the keyed tasks were closed, and the scope had: {left}")
    for outcome in bout.outcomes():
        if isinstance(outcome, BaseException) and not isinstance(outcome, REFUSALS):
            raise outcome
    shop.violations.extend(remains(keyed))
    return bout


async def perform(keyed: KeyedTasks, shop: Workshop, move: Move) -> Any:
    """One move. What it gives is the number of a run, if any."""
    work = shop.worker(move.kind)
    if move.what == "replace":
        task = await keyed.replace(move.key, work, move.key)
        shop.replaced_by(task)
        return shop.run_of(task).number
    if move.what == "enqueue":
        return shop.run_of(await keyed.enqueue(move.key, work, move.key)).number
    if move.what == "start":
        return shop.run_of(keyed.start(move.key, work, move.key)).number
    if move.what == "share":
        return await keyed.share(move.key, work, move.key)
    if move.what == "cancel":
        return await keyed.cancel(move.key)
    assert move.what == "close"
    return await keyed.close()


def remains(keyed: KeyedTasks) -> list[str]:
    """The internal tables that are not empty when everything has ended."""
    tables = {
        "entries": keyed._entries,
        "waiters": keyed._waiters,
        "replacers": keyed._replacers,
        "queues": keyed._queues,
        "live": keyed._registry.live,
        "cancel_requested": keyed._registry.cancel_requested,
        "wrappers": keyed._registry.wrappers,
    }
    return [f"left in the tables: {name}: {table}" for name, table in tables.items() if table]
