"""The life of a scope, as a table.

Rule 1: every change of a scope's state goes through `step` in this file.

            spawn allowed                     no new work
       +-----------------------+   +-----------------------------------+
       OPEN ---- body ended ---> JOINING
        |                          |
        |--- close with grace -----+---> DRAINING --- grace over ---+
        |                          |        |                       v
        +--- close now ------------+--------+--- close now ---> CANCELLING
        |                          |        |                       |
        +--- empty ----------------+--------+--- empty -------------+---> CLOSED
                                                deadline -----------+

OPEN        takes new work.
JOINING     the body of `async with` has ended; its children run on and may spawn siblings.
DRAINING    takes no new work; what is there may finish by itself, within the grace.
CANCELLING  everything is asked to end, once, consumers before what they consume.
CLOSED      final. Whoever did not end by the deadline is still known by name: a straggler.

A failure (with on_failure="cancel"), an error in the body and a cancelled host are all a
"close now". Events that the table does not list for a state change nothing there: closing
twice, a grace that ends after everything was cancelled.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["TRANSITIONS", "Event", "State", "step"]


class State(Enum):
    """Where a scope is in its life."""

    OPEN = "open"
    JOINING = "joining"
    DRAINING = "draining"
    CANCELLING = "cancelling"
    CLOSED = "closed"

    takes_work: bool

    def __init__(self, value: str) -> None:
        # Written down once: every submission asks for it, and an enum's property is slow.
        self.takes_work = value in ("open", "joining")


class Event(Enum):
    """What can happen to a scope."""

    BODY_ENDED = "body ended"
    CLOSE_WITH_GRACE = "close with grace"
    CLOSE_NOW = "close now"
    GRACE_OVER = "grace over"
    EMPTY = "empty"
    DEADLINE = "deadline"


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
        Event.DEADLINE: State.CLOSED,
    },
    State.CLOSED: {},
}


def step(state: State, event: Event) -> State:
    """The state after `event`; the same one where the table has no entry."""
    return TRANSITIONS[state].get(event, state)
