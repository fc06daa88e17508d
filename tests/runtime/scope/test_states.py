"""The table of a scope's states, walked: on paper, and with real scopes."""

from __future__ import annotations

import asyncio
import itertools

import pytest

import handfast
from handfast._runtime.scope.states import TRANSITIONS, Event, State, step
from tests.support.stepping import Stepping, run_stepping


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_every_pair_of_state_and_event_follows_the_table(state: State, event: Event) -> None:
    assert step(state, event) is TRANSITIONS[state].get(event, state)


def test_closed_is_final_and_every_state_leads_there() -> None:
    assert TRANSITIONS[State.CLOSED] == {}
    reached = {State.CLOSED}
    for _ in State:
        reached |= {s for s, row in TRANSITIONS.items() if set(row.values()) & reached}
    assert reached == set(State)


def test_no_state_takes_work_again_once_it_is_refused() -> None:
    for state, row in TRANSITIONS.items():
        if not state.takes_work:
            assert not any(after.takes_work for after in row.values())


def states_of(scope: handfast.Scope) -> tuple[State, bool, bool]:
    return scope._registry.state, scope.closing, scope.closed


def test_a_scope_with_a_grace_goes_through_draining_and_cancelling() -> None:
    async def program(_: Stepping) -> None:
        seen = []
        scope = handfast.Scope("s")

        async def stubborn() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                seen.append(states_of(scope))

        scope.spawn(stubborn())
        await asyncio.sleep(0)
        assert states_of(scope) == (State.OPEN, False, False)
        closing = asyncio.create_task(scope.close(grace=5))
        await asyncio.sleep(1)
        seen.append(states_of(scope))
        await closing
        assert seen == [(State.DRAINING, True, False), (State.CANCELLING, True, False)]
        assert states_of(scope) == (State.CLOSED, False, True)

    run_stepping(program)


def test_a_body_that_has_ended_leaves_its_children_free_to_spawn() -> None:
    async def program(_: Stepping) -> list[str]:
        log: list[str] = []
        async with handfast.Scope("s") as scope:

            async def grandchild() -> None:
                log.append("grandchild")

            async def child() -> None:
                await asyncio.sleep(1)
                log.append(scope._registry.state.value)
                scope.spawn(grandchild())

            scope.spawn(child())
        return log

    assert run_stepping(program) == ["joining", "grandchild"]


def test_a_second_closer_without_grace_ends_the_grace_of_the_first() -> None:
    async def program(stepping: Stepping) -> float:
        scope = handfast.Scope("s", timeout=100)
        scope.spawn(asyncio.sleep(3600))
        patient = asyncio.create_task(scope.close(grace=60))
        await asyncio.sleep(1)
        await scope.close()
        await patient
        return stepping.loop.time()

    assert run_stepping(program) < 2
