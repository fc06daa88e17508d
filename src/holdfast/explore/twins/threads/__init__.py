"""Threads under the explored loop: real ones, of which only one runs at any moment.

`baton` says whose turn it is, `worker` is one thread, `pools` stands in for the threads of an
executor, `locks` for everything that a thread can wait for. `hooks` puts these in the place of
`threading`, `queue`, `time.sleep` and `ThreadPoolExecutor` for the threads of a run and for no
others; `twin` is the part that the loop takes in, and `words` says where a thread stands.
"""

from holdfast.explore.twins.threads.twin import Threads

__all__ = ["Threads"]
