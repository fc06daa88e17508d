"""The whole state of a program at a choice point, as one number.

Equal numbers mean that the program cannot go on differently: whatever it can still reach (frames,
locals, the stacks of suspended coroutines, closures, globals that its code names) is the same, up
to the identity of objects. What cannot be looked into makes a state that is like no other.
"""

from __future__ import annotations

from holdfast.explore.states.remembering import Remembering
from holdfast.explore.states.snapshot import state_of

__all__ = ["Remembering", "state_of"]
