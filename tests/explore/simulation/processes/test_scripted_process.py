"""handfast.Process, unmodified, on scripted children: whatever the child does, and wherever its user
is cancelled, nothing is left of it (S1.2 to S1.8)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import handfast
from handfast._explore.search.plan import Cancel, Plan
from handfast._explore.simulation.processes.script import (
    Closes,
    Dies,
    Errs,
    Exits,
    Forks,
    Hears,
    Ignores,
    On,
    Says,
    Step,
    Waits,
    child,
)
from handfast._explore.victim import victim
from tests.explore.simulation.processes.event_log import plainly

SIGTERM = signal.SIGTERM
SCRIPTS: dict[str, tuple[Step, ...]] = {
    "exits before EOF": (Says(b"a\n"), Forks(Waits(2)), Exits(3)),
    "EOF before exit": (Says(b"a\n"), Closes("stdout"), Closes("stderr"), Waits(2), Exits(3)),
    "grandchild holds the pipes for ever": (
        Forks(Ignores(SIGTERM), Waits()),
        Says(b"a\n"),
        Exits(3),
    ),
    "grandchild left the group": (Forks(Waits(0.5), leaves=True), Says(b"a\n"), Exits(3)),
    "ignores TERM": (Ignores(SIGTERM), Says(b"a\n"), Waits()),
    "says more on TERM": (On(SIGTERM, Says(b"bye\n"), Waits(0.5), Exits(4)), Says(b"a\n"), Waits()),
    "crashes": (Says(b"a\n"), Dies(signal.SIGSEGV)),
    "closes its input": (Closes("stdin"), Says(b"a\n"), Errs(b"e"), Waits()),
    "answers": (Says(b"a\n"), Hears(bytes.upper, lines=None), Exits()),
}
Program = Callable[[], Coroutine[Any, Any, None]]
cases = pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())


def use(script: tuple[Step, ...]) -> Program:
    """A user who reads a line, asks something, and closes."""

    async def session() -> None:
        async with handfast.Process("x", grace=1.0) as process:
            # Killed too early it says nothing, and its grandchild may hold the pipe for ever.
            with contextlib.suppress(TimeoutError, handfast.errors.ProcessGone):
                async with asyncio.timeout(9):
                    async for line in process.stdout.lines():
                        assert line in (b"a\n", b"a")  # cut, and killed in the middle
                        break
                    await process.send(b"question\n")

    async def program() -> None:
        child("x", *script)
        outcome = await victim(session())
        assert not outcome.failed, outcome.error

    return program


@cases
def test_nothing_is_left_in_any_order_of_events(script: tuple[Step, ...]) -> None:
    program = use(script)
    plainly(program)
    for seed in range(15):
        plainly(program, Plan(tail="random", seed=seed))
        plainly(program, Plan(tail="random", seed=seed), faults=("kill",))


@cases
def test_nothing_is_left_wherever_the_user_is_cancelled(script: tuple[Step, ...]) -> None:
    program = use(script)
    instants = plainly(program).instants
    cancelled = 0
    for instant in range(instants):
        cancels = (Cancel(instant, 1),)
        cancelled += plainly(program, Plan(cancels=cancels)).cancelled
        if instant % 3 == 0:
            plainly(program, Plan(cancels=cancels, tail="random", seed=instant))
    assert cancelled > instants / 2


@cases
def test_a_second_cancel_during_the_closing_changes_nothing(script: tuple[Step, ...]) -> None:
    program = use(script)
    instants = plainly(program).instants
    for instant in range(1, instants, 4):
        for later in (1, 3):
            plainly(program, Plan(cancels=(Cancel(instant, 1), Cancel(instant + later, 1))))


def test_closing_ends_a_child_that_ignores_term_after_its_grace() -> None:
    async def program() -> None:
        child("x", Ignores(SIGTERM), Waits())
        loop = asyncio.get_running_loop()
        process = await handfast.Process("x", grace=3.0).start()
        began = loop.time()
        status = await process.close()
        assert status.signal == signal.SIGKILL
        assert loop.time() - began == 3.0

    plainly(program)


def test_the_last_output_of_a_child_is_read() -> None:
    async def program() -> None:
        child("x", On(SIGTERM, Says(b"bye\n"), Exits(4)), Says(b"a\n"), Waits())
        process = await handfast.Process("x").start()
        async for _ in process.stdout.lines():
            break
        assert (await process.close()).code == 4
        assert [line async for line in process.stdout.lines()] == [b"bye\n"]

    plainly(program)
