"""The network in memory: simulated sockets under asyncio's own transports.

`Network` is the mixin for the loop. A `Kernel` owns the sockets, ports, paths and names of one run.
A `FakeSocket` behaves as a socket of Linux does on loopback, and `selector` takes the place of the
selector. Transports, servers and TLS are the code of the stock loop, so they behave as elsewhere.
`real_sockets` is for socket objects that the program creates itself.

There are no files: the path of a Unix socket is known here only, and `os.stat` does not find it.
"""

from handfast._explore.simulation.network.loop_mixin import Network

__all__ = ["Network"]
