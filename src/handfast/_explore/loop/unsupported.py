"""Calls that an explored loop cannot control are refused, with the name of the call and what to do.

The error is not an `Exception`, so that a program which catches everything cannot hide it.
"""

from __future__ import annotations

from typing import Any, NoReturn

_SELECTOR = "the explorer has no real descriptors"
_ADVICE = "script it (handfast.scripted), or allow it with real_io=True (--real-io)"


class Uncontrolled(BaseException):
    """The program did something whose result or time the explorer cannot decide.

    `name` is the call, `why` the reason. With `real_io=True` the call is made for real, and the
    result cannot be replayed.
    """

    def __init__(self, name: str, why: str, advice: str = _ADVICE) -> None:
        self.name = name
        self.why = why
        self.advice = advice
        super().__init__(f"{name} is not controlled: {why}; {advice}")

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process sends it to its parent.
        return Uncontrolled, (self.name, self.why, self.advice)


def _refused(name: str) -> Any:
    def refuse(self: Refusing, *args: Any, **kwargs: Any) -> NoReturn:
        self.refuse(f"loop.{name}", _SELECTOR)

    refuse.__name__ = name
    return refuse


class Refusing:
    """The calls of an event loop that reach outside and are not simulated."""

    def refuse(self, name: str, why: str) -> NoReturn:
        """Refuse a call; the run ends with this even if the program catches the error."""
        error = Uncontrolled(name, why)
        self.uncontrolled = error
        raise error

    uncontrolled: Uncontrolled | None = None


_REFUSED = """
    add_reader remove_reader add_writer remove_writer add_signal_handler remove_signal_handler
    sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall sock_sendto
    sock_accept sock_sendfile sendfile create_datagram_endpoint connect_accepted_socket
    connect_read_pipe connect_write_pipe
"""
for _name in _REFUSED.split():
    setattr(Refusing, _name, _refused(_name))
