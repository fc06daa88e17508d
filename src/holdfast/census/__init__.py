"""What is alive now: tasks, timers, generators, threads, children, connections, descriptors.

`take` looks at everything once; two censuses are compared by the keys of what they saw. The room:

    census                   taking one, and comparing
    thing, birth             what is alive; where it was made, and for whom
    births, hooks, recording how births come to be known
    loops, process_table     where to look
    tasks, errors, timers, generators, children, threads, executors, connections, resources
                             one file for each kind that is looked at by default
    descriptors, retained, memory
                             one for each that is on request

It only looks. What is a leak, and what is done about it, `holdfast.leaks` decides.
"""

from __future__ import annotations

from holdfast.census.birth import Birth
from holdfast.census.births import owned_by, owned_here_by
from holdfast.census.census import CHECKS, DEFAULT, ON_REQUEST, Census, take
from holdfast.census.recording import catch_up, recording
from holdfast.census.resources import register
from holdfast.census.thing import Thing

__all__ = [
    "CHECKS",
    "DEFAULT",
    "ON_REQUEST",
    "Birth",
    "Census",
    "Thing",
    "catch_up",
    "owned_by",
    "owned_here_by",
    "recording",
    "register",
    "take",
]
