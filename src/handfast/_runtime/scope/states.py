"""The states of a scope and the transitions between them, as a table.

Every change of a scope's state goes through `step` in this file.

            spawn allowed                     no new work
       +-----------------------+   +-----------------------------------+
       OPEN ---- body ended ---> JOINING
        |                          |
        |--- close with grace -----+---> DRAINING --- grace over ---+
        |                          |        |                       v
        +--- close now ------------+--------+--- close now ---> CANCELLING
        |                          |        |                       |
        +--- empty ----------------+--------+--- empty -------------+---> CLOSED
                                                timed out ----------+

OPEN        accepts new work.
JOINING     the body of `async with` has ended; its children run on and may spawn siblings.
DRAINING    accepts no new work; running tasks may finish by themselves, within the grace.
CANCELLING  every task is cancelled, once; then what is held is left.
CLOSED      final. Tasks that did not end within the time-out are reported as stragglers.

A failure (with on_failure="cancel"), an error in the body and a cancelled host are all a
"close now". Events that the table does not list for a state change nothing there: closing
twice, a grace that ends after everything was cancelled.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """The state of a scope."""

    OPEN = "open"
    JOINING = "joining"
    DRAINING = "draining"
    CANCELLING = "cancelling"
    CLOSED = "closed"

    takes_work: bool

    def __init__(self, value: str) -> None:
        # Computed once: every submission reads it, and a property of an enum is slow.
        self.takes_work = value in ("open", "joining")


class Event(Enum):
    """An event that may change the state of a scope."""

    BODY_ENDED = "body ended"
    CLOSE_WITH_GRACE = "close with grace"
    CLOSE_NOW = "close now"
    GRACE_OVER = "grace over"
    EMPTY = "empty"
    TIMED_OUT = "timed out"


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.OPEN: {
        Event.BODY_ENDED: State.JOINING,
        Event.CLOSE_WITH_GRACE: State.DRAINING,
        Event.CLOSE_NOW: State.CANCELLING,
        Event.EMPTY: State.CLOSED,
    },
    State.JOINING: {
        Event.CLOSE_WITH_GRACE: State.DRAINING,
        Event.CLOSE_NOW: State.CANCELLING,
        Event.EMPTY: State.CLOSED,
    },
    State.DRAINING: {
        Event.CLOSE_NOW: State.CANCELLING,
        Event.GRACE_OVER: State.CANCELLING,
        Event.EMPTY: State.CLOSED,
    },
    State.CANCELLING: {
        Event.EMPTY: State.CLOSED,
        Event.TIMED_OUT: State.CLOSED,
    },
    State.CLOSED: {},
}


def step(state: State, event: Event) -> State:
    """The state after `event`; the same state if the table has no entry."""
    return TRANSITIONS[state].get(event, state)
