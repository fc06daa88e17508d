"""Interleaved starts: at most one live task per key, tracked, looked at between any two handles.

S0.3 for all orders of a few operations and for random orders of many; S0.4 in all of them, since
the watch also notes what a worker does after it was replaced. First, that the watch can fail.
HANDFAST_RANDOM_PROGRAMS=5000 runs so many random orders, HANDFAST_RANDOM_SEED=7 from that seed on.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from functools import partial
from itertools import product

import pytest

from tests.runtime.keyed_tasks.random_sequences import Move, fight
from tests.runtime.keyed_tasks.reported_keyed_tasks import GuardedPop, UnconditionalPop
from tests.runtime.scope.workshop import Workshop, turns
from tests.support.stepping import Stepping, run_stepping

COUNT = int(os.environ.get("HANDFAST_RANDOM_PROGRAMS", "200"))
SEED = int(os.environ.get("HANDFAST_RANDOM_SEED", "0"))
OPERATIONS = ("replace", "share", "enqueue", "start", "cancel", "close")
FACTORIES = [False, True] if sys.version_info >= (3, 12) else [False]


# --- the watch can fail --------------------------------------------------------------------


async def commands(
    stepping: Stepping, owner: GuardedPop, starts: tuple[int, ...], kind: str
) -> list[str]:
    """Handlers of one user's commands, started so many turns after one another."""
    shop = Workshop(owner, lambda: owner.tasks.values(), "a")
    stepping.at_each_step(shop.check)

    async def command() -> None:
        shop.replaced_by(await owner.replace("a", shop.worker(kind), "a"))

    handlers = []
    for after in starts:
        await turns(after)
        handlers.append(asyncio.create_task(command()))
    await asyncio.wait(handlers)
    await turns(5)
    workers = [task for task in asyncio.all_tasks() if task.get_name().startswith("work:")]
    for task in workers:
        task.cancel()
    if workers:
        await asyncio.wait(workers)
    await turns(2)
    return shop.violations


@pytest.mark.parametrize(
    ("owner", "kind", "starts", "finding"),
    [
        # Two handlers between "cancel the old one" and "store the new one".
        (GuardedPop, "idle", (0, 2, 0), "alive and not tracked"),
        (GuardedPop, "idle", (0, 2, 0), "2 live tasks of one key"),
        # Nobody joins the old one.
        (GuardedPop, "lingering", (0, 2), "goes on after it was replaced"),
        # As the report wants it: the old one takes the entry of the new one with it.
        (UnconditionalPop, "lingering", (0, 2), "alive and not tracked"),
        (UnconditionalPop, "lingering", (0, 2, 3), "an entry: False, a live task: ["),
    ],
)
def test_the_watch_sees_what_the_reported_patterns_do_wrong(
    owner: type[GuardedPop], kind: str, starts: tuple[int, ...], finding: str
) -> None:
    """What S0.1 to S0.4 are about is not an invention of the tests."""
    violations = run_stepping(lambda stepping: commands(stepping, owner(), starts, kind))
    assert [each for each in violations if finding in each]


def test_the_watch_sees_the_entry_of_a_task_that_was_cancelled_before_its_first_step() -> None:
    """The reported `finally` never runs then, with a guard or without."""

    async def program(stepping: Stepping) -> list[str]:
        owner = UnconditionalPop()
        shop = Workshop(owner, lambda: owner.tasks.values(), "a")
        stepping.at_each_step(shop.check)
        await owner.replace("a", shop.worker("idle"), "a")
        await owner.cancel("a")
        await asyncio.sleep(1)
        return shop.violations

    assert run_stepping(program)[-1] == "an entry: True, a live task: []"


# --- KeyedTasks ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("present", "eager"),
    [("idle", False), ("brief", False), *(("lingering", eager) for eager in FACTORIES)],
)
def test_one_live_task_and_it_is_tracked_in_all_orders_of_two_operations(
    present: str, eager: bool
) -> None:
    """S0.3, S0.4: on a key that is in use, from the same turn to four turns apart."""
    for first, second in product(OPERATIONS, OPERATIONS):
        for before, between in product((0, 1, 2), range(5)):
            moves = [
                Move(0, "start", present),
                Move(before, first, "lingering"),
                Move(between, second, "brief"),
            ]
            bout = run_stepping(partial(fight, moves=moves, eager=eager))
            assert bout.shop.violations == [], moves


@pytest.mark.parametrize("first", OPERATIONS)
def test_one_live_task_and_it_is_tracked_in_all_orders_of_three_operations(first: str) -> None:
    """S0.3, S0.4."""
    for second, third in product(OPERATIONS, OPERATIONS):
        for gaps in product((0, 1, 3), (0, 2)):
            moves = [
                Move(0, "replace", "lingering"),
                Move(1, first, "idle"),
                Move(gaps[0], second, "lingering"),
                Move(gaps[1], third, "idle"),
            ]
            bout = run_stepping(partial(fight, moves=moves))
            assert bout.shop.violations == [], moves


@pytest.mark.parametrize("eager", FACTORIES)
def test_one_live_task_and_it_is_tracked_in_random_orders_of_many_operations(eager: bool) -> None:
    """S0.3, S0.4: two keys, all kinds of workers, callers that go away."""
    for seed in range(SEED, SEED + COUNT):
        moves = random_moves(random.Random(seed))
        bout = run_stepping(partial(fight, moves=moves, eager=eager))
        assert bout.shop.violations == [], (seed, moves)


def random_moves(dice: random.Random) -> list[Move]:
    moves: list[Move] = []
    callers = 0
    for _ in range(dice.randint(4, 14)):
        after = dice.choice((0, 0, 0, 1, 1, 2, 4))
        if callers and dice.random() < 0.15:
            moves.append(Move(after, "leave", number=dice.randrange(callers)))
            continue
        callers += 1
        moves.append(
            Move(
                after,
                dice.choices(OPERATIONS, (8, 4, 4, 2, 2, 0.3))[0],
                dice.choice(("instant", "brief", "idle", "lingering", "failing", "clumsy")),
                dice.choice(("a", "a", "b")),
            )
        )
    return moves


@pytest.mark.parametrize("kind", ["idle", "lingering"])
def test_the_last_of_several_replacements_stays(kind: str) -> None:
    """S0.3: who comes while a key passes from one to the next does not get in between."""
    for gaps in product(range(5), repeat=3):
        moves = [Move(0, "replace", kind), *(Move(after, "replace", kind) for after in gaps)]
        bout = run_stepping(partial(fight, moves=moves))
        assert bout.shop.violations == [], moves
        assert bout.outcomes() == [0, 1, 2, 3], moves
        assert bout.holders == [3], moves


def test_who_queues_waits_for_the_end_of_what_has_replaced_the_present_task() -> None:
    """S0.3: who replaces goes first, though it came later, and nobody is started in between."""
    for gaps in product(range(5), repeat=2):
        moves = [
            Move(0, "start", "lingering"),
            Move(gaps[0], "enqueue", "brief"),
            Move(gaps[1], "replace", "brief"),
        ]
        bout = run_stepping(partial(fight, moves=moves))
        assert bout.shop.violations == [], moves
        assert bout.outcomes() == [0, 2, 1], moves
        assert len(bout.report.cancelled) == 0, moves


def test_who_queues_comes_in_the_order_of_the_queue() -> None:
    """S0.3: also when the key is cancelled or replaced meanwhile. A cancel ends the present
    task, and not the one that comes after it."""
    for what, *gaps in product(("replace", "cancel"), range(4), range(4), range(4)):
        moves = [
            Move(0, "start", "lingering"),
            Move(0, "enqueue", "brief"),
            Move(gaps[0], "enqueue", "brief"),
            Move(gaps[1], what, "brief"),
            Move(gaps[2], "enqueue", "instant"),
        ]
        bout = run_stepping(partial(fight, moves=moves))
        assert bout.shop.violations == [], moves
        present, first, second, between, third = bout.outcomes()
        expected = [0, 2, 3, 1, 4] if what == "replace" else [0, 1, 2, True, 3]
        assert [present, first, second, between, third] == expected, moves
        assert [run.number for run in bout.shop.operations[-2:]] == [expected[2], expected[4]]
