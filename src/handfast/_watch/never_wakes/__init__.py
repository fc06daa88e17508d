"""Tasks that can never wake: nothing alive can complete what they await, only a cancel ends them.

- `search`: `find_never_waking`, what the agent calls; explains the method
- `heap`: who refers to an object, and which references the heap does not explain
- `holders`: which holder of a reference can act on it
- `cancelling`: timers and signals that will cancel a task
- `parked`: tasks that wait forever on purpose
- `alone`: keep other threads from changing the heap during a search
"""

from handfast._watch.never_wakes.search import Group, NeverWaking, find_never_waking

__all__ = ["Group", "NeverWaking", "find_never_waking"]
