"""The whole state of a program at a choice point, as one number.

Equal numbers mean that the program cannot continue differently: everything that it can still reach
(frames, locals, the stacks of suspended coroutines, closures, globals that its code names) is the
same, up to the identity of objects. A state that cannot be read in full is equal to no other.

`loop_state` reads the loop, `object_graph` everything that it leads to, `reachable_globals` the
globals that code can reach, `class_layout` the attributes of instances. `recorder` is the decider
that records the states of a run.
"""

from __future__ import annotations


class UnknownState(Exception):
    """The state depends on something that cannot be read, or is too large."""
