"""What an explored loop cannot control is refused at the call, by its name and with the way out.

The error is no `Exception`, so that a program which catches everything cannot hide it.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["Refusing", "Uncontrolled"]

_SELECTOR = "the explorer has no real descriptors"
_WAY_OUT = "use a scripted twin (holdfast.explore), or allow it with real_io=True (--real-io)"


class Uncontrolled(BaseException):
    """The program did something whose outcome or moment the explorer cannot decide.

    `name` is the call, `why` the reason. With `real_io=True` the call is made for real, and the
    result cannot be replayed.
    """

    def __init__(self, name: str, why: str, way_out: str = _WAY_OUT) -> None:
        self.name = name
        self.why = why
        self.way_out = way_out
        super().__init__(f"{name} is not controlled: {why}; {way_out}")

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker sends it to the process that asked.
        return Uncontrolled, (self.name, self.why, self.way_out)


def _refused(name: str) -> Any:
    def refuse(self: Refusing, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse(f"loop.{name}", _SELECTOR)

    refuse.__name__ = name
    return refuse


class Refusing:
    """The calls of an event loop that reach outside and have no scripted twin."""

    def refuse(self, name: str, why: str) -> NoReturn:
        """Refuse a call; the run ends with this even if the program catches the error."""
        error = Uncontrolled(name, why)
        self.uncontrolled = error
        raise error

    uncontrolled: Uncontrolled | None = None

    add_reader = _refused("add_reader")
    remove_reader = _refused("remove_reader")
    add_writer = _refused("add_writer")
    remove_writer = _refused("remove_writer")
    add_signal_handler = _refused("add_signal_handler")
    remove_signal_handler = _refused("remove_signal_handler")
    sock_recv = _refused("sock_recv")
    sock_recv_into = _refused("sock_recv_into")
    sock_recvfrom = _refused("sock_recvfrom")
    sock_recvfrom_into = _refused("sock_recvfrom_into")
    sock_sendall = _refused("sock_sendall")
    sock_sendto = _refused("sock_sendto")
    sock_accept = _refused("sock_accept")
    sock_sendfile = _refused("sock_sendfile")
    sendfile = _refused("sendfile")
    create_datagram_endpoint = _refused("create_datagram_endpoint")
    connect_accepted_socket = _refused("connect_accepted_socket")
    connect_read_pipe = _refused("connect_read_pipe")
    connect_write_pipe = _refused("connect_write_pipe")
