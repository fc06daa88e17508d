"""The network in memory: sockets of a kernel of our own, under asyncio's own transports.

`Network` (calls) is the mixin; a `Kernel` owns the sockets, ports, paths and names of one run.
A `TwinSocket` does what Linux does on loopback, an `Inbox` holds the bytes on their way to one, a
`Readiness` is the moment at which a selector would tell the loop, and `selecting` stands where the
selector would. Transports, servers and TLS are the stock loop's own code on top of that
(`borrowed`, `transports`), so that what they do is what they do anywhere. `adopting` is for real
socket objects that programs bring, `leftovers` for what they forget to close.

There are no files: the path of a Unix socket is known here only, and `os.stat` does not find it.
"""

from holdfast.explore.twins.network.calls import Network

__all__ = ["Network"]
