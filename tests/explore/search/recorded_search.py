"""Drives a strategy over a program by hand, one plan after the other, and collects what came of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from handfast._explore.search.plan import Record, Settings
from handfast._explore.search.run import run
from handfast._explore.search.strategies import Strategy

# Writes what happens into the log that it is given.
Logging = Callable[[list[str]], Coroutine[Any, Any, object]]
# The log, then the verdict in a word: nothing if there is none.
Outcome = tuple[str, ...]
Program = Callable[[], Coroutine[Any, Any, object]]


def records(
    strategy: Strategy, program: Program, settings: Settings, *, limit: int = 20_000
) -> list[Record]:
    """Every run that the strategy asks for, up to `limit`."""
    found: list[Record] = []
    while len(found) < limit:
        plans = strategy.batch()
        if not plans:
            break
        for plan in plans:
            record = run(program, plan, settings)
            found.append(record)
            strategy.learn(record)
    return found


def outcomes_of(
    strategy: Strategy, program: Logging, settings: Settings, *, limit: int = 20_000
) -> tuple[set[Outcome], list[Record]]:
    """What the runs of a strategy led to: each log, then the verdict in a word."""
    log: list[str] = []
    seen: set[Outcome] = set()

    async def logged() -> None:
        log.clear()
        await program(log)

    found: list[Record] = []
    while len(found) < limit:
        plans = strategy.batch()
        if not plans:
            break
        for plan in plans:
            record = run(logged, plan, settings)
            seen.add(outcome(log, record))
            found.append(record)
            strategy.learn(record)
    return seen, found


def outcome(log: list[str], record: Record) -> Outcome:
    verdict = record.verdict
    said = () if verdict is None else (f"{verdict.code} {verdict.error_type}".strip(),)
    return (*log, *said)
