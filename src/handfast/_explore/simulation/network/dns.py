"""Name resolution without a network: the same name has the same address in every run.

This machine is 127.0.0.1. Every other name gets an address from a range that is reserved for tests
(RFC 2544, RFC 4193), in the order of the look-ups.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

Info = tuple[int, int, int, str, Any]

_KINDS = ((socket.SOCK_STREAM, socket.IPPROTO_TCP), (socket.SOCK_DGRAM, socket.IPPROTO_UDP))


class Resolver:
    """The names that one run has looked up."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def look_up(
        self,
        host: Any,
        port: Any,
        family: int = 0,
        type: int = 0,  # noqa: A002 - its name in the socket module
        proto: int = 0,
        flags: int = 0,
    ) -> list[Info]:
        """As `socket.getaddrinfo`."""
        if isinstance(host, bytes):
            host = host.decode()
        address = self._address(host or None, family, flags)
        number = _port(port)
        version = socket.AF_INET if address.version == 4 else socket.AF_INET6
        if family not in (socket.AF_UNSPEC, version):
            raise socket.gaierror(socket.EAI_FAMILY, "Address family for hostname not supported")
        return [
            (version, each, its_proto, "", socket_address(version, str(address), number))
            for each, its_proto in _KINDS
            if type in (0, each) and proto in (0, its_proto)
        ]

    def _address(
        self, host: str | None, family: int, flags: int
    ) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        if host is None:
            # No host: the wildcard address for a server, loopback for a client.
            here = 0 if flags & socket.AI_PASSIVE else 0x7F000001
            if family == socket.AF_INET6:
                return ipaddress.IPv6Address(int(bool(here)))
            return ipaddress.IPv4Address(here)
        try:
            return ipaddress.ip_address(host)
        except ValueError:
            # A name is not an address, and this flag forbids a look-up.
            if flags & socket.AI_NUMERICHOST:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
        # RFC 6761: every name below .localhost is the loopback address.
        if host == "localhost" or host.endswith(".localhost"):
            return self._address(None, family, 0)
        number = self._numbers.setdefault(host, len(self._numbers) + 1)
        if family == socket.AF_INET6:
            return ipaddress.IPv6Address("fd00::") + number
        return ipaddress.IPv4Address("198.18.0.0") + number

    def name(self, host: str) -> str:
        """The name of an address; the address if it has none."""
        address = ipaddress.ip_address(host)
        if address.is_loopback:
            return "localhost"
        for name, number in self._numbers.items():
            if self._address(name, 0, 0) == address or int(address) - (0xFD << 120) == number:
                return name
        return host

    @staticmethod
    def unbound(family: int) -> Any:
        """The address of a socket that has none yet."""
        return socket_address(family, "::" if family == socket.AF_INET6 else "0.0.0.0", 0)


def socket_address(family: int, host: str, port: int) -> Any:
    """An address as a socket of this family writes it."""
    return (host, port, 0, 0) if family == socket.AF_INET6 else (host, port)


def _port(port: Any) -> int:
    if port is None or port in ("", b""):
        return 0
    try:
        return int(port)
    except ValueError:
        service = port.decode() if isinstance(port, bytes) else port
        return socket.getservbyname(service)
