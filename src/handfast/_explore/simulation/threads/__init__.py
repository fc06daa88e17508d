"""Threads under the explored loop: real threads, of which only one runs at a time.

- `baton`         which thread runs; the thread of the loop decides
- `worker`        one thread of the program
- `executor`      the threads of a `ThreadPoolExecutor`
- `locks`         which threads take part in a run, and the locks they wait for
- `replacements`, `patches`   what replaces `threading`, `queue`, `time.sleep` and the executors,
                  for the threads of a run only
- `loop_mixin`    the side of the loop
"""

from handfast._explore.simulation.threads.loop_mixin import Threads

__all__ = ["Threads"]
