"""A simulated socket answers each call as the kernel of this machine answers it: the same calls on real
sockets, one by one, bytes and error codes alike.

Real TCP may be slow even on loopback. So a script whose answers differ gets two more tries.
"""

from __future__ import annotations

import asyncio
import errno
import random
import socket
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.loop.stepping import Stepper
from handfast._explore.search.deciders import Follow
from handfast._explore.search.plan import Settings
from handfast._explore.simulation.network.selector import Readiness

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the simulation does as Linux does")

Op = tuple[int, str, Any]
Pair = Sequence[Any]

_HOWS = (socket.SHUT_WR, socket.SHUT_WR, socket.SHUT_RD, socket.SHUT_RDWR)


def draw(seed: int) -> list[Op]:
    """Some calls on either end of a connection."""
    lot = random.Random(seed)
    ops: list[Op] = []
    for _ in range(lot.randrange(3, 9)):
        name = lot.choice(("send", "send", "recv", "recv", "recv", "close", "shutdown"))
        argument = {"send": b"ab", "recv": lot.choice((1, 100)), "shutdown": lot.choice(_HOWS)}
        ops.append((lot.randrange(2), name, argument.get(name)))
    return ops


def real_pair(family: int) -> Pair:
    if family == socket.AF_UNIX:
        pair = socket.socketpair()
    else:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            pair = client, listener.accept()[0]
    for sock in pair:
        sock.setblocking(False)
        if family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    return pair


def fake_pair(loop: ExploredLoop, family: int) -> Pair:
    kernel = loop._kernel
    listener = kernel.listener(family)
    listener.bind("/test.sock" if family == socket.AF_UNIX else ("127.0.0.1", 0))
    listener.listen()
    client = kernel.client(family)
    try:
        client.connect(listener.getsockname())
    except BlockingIOError:
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    accepted, _ = listener.accept()
    listener.close()
    return client, accepted


def answers(pair: Pair, ops: list[Op]) -> list[Any]:
    said = [_answer(pair[side], name, argument) for side, name, argument in ops]
    for sock in pair:
        sock.close()
    return said


def _answer(sock: Any, name: str, argument: Any) -> Any:
    try:
        return getattr(sock, name)(*(() if argument is None else (argument,)))
    except OSError as error:
        return errno.errorcode[error.errno or 0]


@pytest.fixture
def loop() -> Any:
    loop = ExploredLoop()
    loop.prepare(Stepper(Settings(), Follow(())))
    yield loop
    loop.close()


@linux_only
@pytest.mark.parametrize("family", [socket.AF_UNIX, socket.AF_INET], ids=["unix", "tcp"])
def test_a_fake_socket_answers_each_call_as_the_kernel_does(
    loop: ExploredLoop, family: int
) -> None:
    for seed in range(1_000):
        ops = draw(seed)
        fake = answers(fake_pair(loop, family), ops)
        assert any(answers(real_pair(family), ops) == fake for _ in range(3)), (seed, ops, fake)


def test_a_call_on_an_unconnected_socket_fails(loop: ExploredLoop) -> None:
    sock = loop._kernel.client(socket.AF_INET)
    for name, argument in (("send", b"a"), ("recv", 1), ("shutdown", 1), ("getpeername", None)):
        assert _answer(sock, name, argument) == "ENOTCONN"
    assert _answer(sock, "accept", None) == "EINVAL"
    assert sock.getsockname() == ("0.0.0.0", 0)
    assert "the client of connection 1" in repr(sock)
    sock.close()
    sock.close()
    assert sock.fileno() == -1
    assert _answer(sock, "send", b"a") == "EBADF"


def test_options_are_kept_and_nothing_blocks(loop: ExploredLoop) -> None:
    sock = loop._kernel.client(socket.AF_INET6)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 0
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == bytes(8)
    sock.setblocking(True)
    sock.settimeout(3)
    assert (sock.gettimeout(), sock.get_inheritable()) == (0.0, False)
    assert sock.getsockname() == ("::", 0, 0, 0)


def test_a_full_direction_takes_no_more_until_it_is_read(loop: ExploredLoop) -> None:
    client, server = fake_pair(loop, socket.AF_INET)
    assert client.send(bytes(100_000)) == 65_536
    assert _answer(client, "send", b"a") == "EAGAIN"
    assert len(server.recv(10_000)) == 10_000
    assert client.sendmsg([b"ab", b"c"]) == 3


def test_closing_with_linger_zero_resets(loop: ExploredLoop) -> None:
    client, server = fake_pair(loop, socket.AF_INET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    server.close()
    assert _answer(client, "recv", 1) == "ECONNRESET"
    assert _answer(client, "recv", 1) == b""


def test_closing_a_listener_resets_connections_that_were_not_accepted(loop: ExploredLoop) -> None:
    listener = loop._kernel.listener(socket.AF_UNIX)
    listener.bind("/test.sock")
    listener.listen()
    client, gone = loop._kernel.client(socket.AF_UNIX), loop._kernel.client(socket.AF_UNIX)
    client.connect("/test.sock")
    gone.connect("/test.sock")
    gone.close()
    listener.close()
    assert _answer(client, "recv", 1) == "ECONNRESET"


def test_a_ready_handle_is_queued_again_only_after_it_has_run(loop: ExploredLoop) -> None:
    channel = loop.channel("a socket")
    readiness = Readiness(channel, loop._ready)
    readiness.watch(asyncio.Handle(print, (), loop))
    readiness.update(True, "bytes")
    readiness.update(True, "more bytes")
    (event,) = channel.queue
    channel.drop(event)
    event.arrive()
    readiness.update(True, "bytes that the same read will see")
    assert not channel.queue
    readiness.handled()
    readiness.update(True, "bytes that it has not seen")
    assert len(channel.queue) == 1
