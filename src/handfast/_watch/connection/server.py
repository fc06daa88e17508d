"""Serves the watch on a Unix socket: read-only verbs, for processes of the same user.

One thread accepts, and one more serves each client, at most four. Every read and write has a deadline,
so a client that sends half a request or never reads an answer loses its connection, and no other.
"""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from handfast._watch.connection import peer
from handfast._watch.connection.protocol import (
    MAX_REQUEST,
    Deadline,
    ProtocolError,
    read_frame,
    request_in,
    write_answer,
)

Verb = Callable[[Mapping[str, Any]], Iterable[str]]
"""Makes the result for a request: JSON in parts."""

MAX_CLIENTS = 4
IDLE = 60.0
"""A client that sends no request for so long is disconnected."""
ANSWER = 20.0
"""An answer has to be read within so many seconds."""


class Server:
    """Listens until it is stopped."""

    def __init__(self, listening: socket.socket, path: Path, verbs: Mapping[str, Verb]) -> None:
        self._listening = listening
        self.path = path
        self._verbs = verbs
        # Ours, and nobody else's: another process may have replaced the path meanwhile.
        self._inode = os.stat(path).st_ino
        self._wake, self._woken = socket.socketpair()
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, threading.Thread] = {}
        self._stopped = False
        self._thread = threading.Thread(
            target=self._accept, name="handfast-watch-accept", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Disconnect all clients, and remove the socket."""
        with self._lock:
            self._stopped = True
            clients = list(self._clients.items())
        with suppress(OSError):
            self._wake.send(b"x")
        for connected, _ in clients:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        for _, thread in clients:
            thread.join(5)
        self.close_sockets()
        with suppress(OSError):
            if os.stat(self.path).st_ino == self._inode:
                os.unlink(self.path)

    def close_sockets(self) -> None:
        """Close what this process has of the sockets. In a forked child, which must not remove the
        parent's."""
        for each in (self._listening, self._wake, self._woken, *self._clients):
            each.close()

    def _accept(self) -> None:
        while not self._stopped:
            # A file descriptor above 1,023 needs poll; macOS has it, too.
            poll = select.poll()
            poll.register(self._listening, select.POLLIN)
            poll.register(self._woken, select.POLLIN)
            poll.poll()
            if not self._stopped:
                self._accept_one()

    def _accept_one(self) -> None:
        try:
            connected, _ = self._listening.accept()
        except OSError:  # the client is gone; or no descriptor is left: let others be closed
            threading.Event().wait(0.05)
            return
        if not peer.is_own(connected):
            connected.close()
            return
        thread = self._admit(connected)
        if thread is None:
            _refuse(connected)
        else:
            self._start(connected, thread)

    def _admit(self, connected: socket.socket) -> threading.Thread | None:
        """A thread for a client; None if there are too many."""
        with self._lock:
            if self._stopped or len(self._clients) >= MAX_CLIENTS:
                return None
            thread = self._clients[connected] = threading.Thread(
                target=self._serve, args=(connected,), name="handfast-watch-client", daemon=True
            )
            return thread

    def _start(self, connected: socket.socket, thread: threading.Thread) -> None:
        try:
            thread.start()
        except RuntimeError:  # no thread is left, or the interpreter exits
            self._forget(connected)

    def _serve(self, connected: socket.socket) -> None:
        try:
            while not self._stopped:
                frame = read_frame(connected, Deadline(IDLE), MAX_REQUEST)
                write_answer(connected, self._answer(frame), Deadline(ANSWER))
        except ProtocolError as error:
            with suppress(OSError):
                write_answer(connected, _error(str(error)), Deadline(1))
        except (OSError, EOFError):
            pass
        finally:
            self._forget(connected)

    def _forget(self, connected: socket.socket) -> None:
        with self._lock:
            self._clients.pop(connected, None)
        connected.close()

    def _answer(self, frame: bytes) -> Iterable[str]:
        request = request_in(frame)
        verb = self._verbs.get(request["verb"])
        if verb is None:
            return _error(f"there is no such verb; there are {', '.join(sorted(self._verbs))}")
        return _result(verb, request)


def _result(verb: Verb, request: Mapping[str, Any]) -> Iterable[str]:
    try:
        parts = verb(request)
    except ProtocolError:
        raise
    except Exception as error:  # a bug of ours must not end the agent
        yield from _error(f"{type(error).__name__} in the watch: {error}")
        return
    yield '{"result":'
    yield from parts
    yield "}"


def _error(message: str) -> Iterable[str]:
    yield json.dumps({"error": message})


def _refuse(connected: socket.socket) -> None:
    with suppress(OSError):
        write_answer(connected, _error("four clients are connected already"), Deadline(0.05))
        # A connection that is closed with a request unread is reset, and the answer is lost.
        connected.settimeout(0.05)
        connected.recv(MAX_REQUEST)
    connected.close()
