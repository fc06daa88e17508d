"""Reads the watch of another process, over its socket."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from handfast._watch.connection import peer
from handfast._watch.connection.protocol import Deadline, ProtocolError, read_answer, write_frame
from handfast._watch.connection.socket_folder import remove_if_stale, sockets
from handfast._watch.error import WatchError
from handfast._watch.snapshot import Snapshot, SnapshotError, WatchedProcess

_CONNECT = 5.0
_ANSWER = 60.0
# For each process of a list, where one that is stopped must not hold up the others.
_HELLO = 5.0
_ENABLE = "start it with HANDFAST_WATCH=1 in its environment, or call handfast.watch.serve() in it"


class Client:
    """A connection to the agent of a process.

    Use it with `with`, or close it.
    """

    def __init__(self, pid: int, path: Path, hello: float | None = None) -> None:
        self.pid = pid
        self._socket = _connected(pid, path)
        try:
            self.process = _process(self._call({"verb": "hello"}, hello))
        except BaseException:
            self.close()
            raise

    def summary(self) -> Snapshot:
        """A snapshot without tasks: loops and places. Cheap enough for twice a second."""
        return self._snapshot({"verb": "summary"})

    def snapshot(self, tasks: int = 1000) -> Snapshot:
        """A snapshot with at most so many tasks, the oldest first."""
        return self._snapshot({"verb": "snapshot", "tasks": tasks})

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _snapshot(self, request: dict[str, Any]) -> Snapshot:
        try:
            return Snapshot.from_json(json.dumps(self._call(request)))
        except SnapshotError as error:
            raise WatchError(f"process {self.pid}: {error}") from None

    def _call(self, request: dict[str, Any], seconds: float | None = None) -> Any:
        try:
            deadline = Deadline(seconds or _ANSWER)
            with suppress(ConnectionError):  # refused: the answer says why
                write_frame(self._socket, json.dumps(request).encode(), deadline)
            answer = json.loads(read_answer(self._socket, deadline))
        except TimeoutError:
            raise WatchError(
                f"process {self.pid} does not answer: its interpreter is held up, by an extension "
                "module or because it is stopped. py-spy dump shows where"
            ) from None
        except (EOFError, ConnectionError):
            raise WatchError(f"process {self.pid} has ended, or has stopped its watch") from None
        except (OSError, ProtocolError, ValueError) as error:
            raise WatchError(f"process {self.pid} gives no answer: {error}") from None
        if not isinstance(answer, dict) or "result" not in answer:
            problem = answer.get("error") if isinstance(answer, dict) else None
            raise WatchError(f"process {self.pid}: {problem or 'an answer without a result'}")
        return answer["result"]


def processes() -> list[WatchedProcess]:
    """The processes of this user that can be watched. Stale sockets are removed."""
    return [each for each in answers() if isinstance(each, WatchedProcess)]


def answers() -> Iterator[WatchedProcess | WatchError]:
    """The same, and why others do not say which process they are."""
    for pid, path in sockets():
        try:
            with Client(pid, path, _HELLO) as client:
                answer: WatchedProcess | WatchError = client.process
        except WatchError as error:
            if remove_if_stale(path) or not path.exists():
                continue
            answer = error
        yield answer


def connect(process: int | str) -> Client:
    """Connect to a process, by its id or the name of its program."""
    if isinstance(process, str) and not process.isdecimal():
        return _connect_by_name(process)
    pid = int(process)
    for _, path in list(sockets(pid)):
        if (connected := _connect_unless_stale(pid, path)) is not None:
            return connected
    if pid == 0 or not _exists(pid):
        raise WatchError(f"there is no process {pid}; `handfast ps` lists those with a watch")
    raise WatchError(f"process {pid} has no watch: {_ENABLE}")


def _connect_unless_stale(pid: int, path: Path) -> Client | None:
    try:
        return Client(pid, path)
    except WatchError:
        # Not before: the look whether it is stale takes one of the four places for a moment.
        if remove_if_stale(path) or not path.exists():
            return None
        raise


def _connect_by_name(name: str) -> Client:
    found = list(answers())
    listed = [each for each in found if isinstance(each, WatchedProcess)]
    named = [each for each in listed if name in (each.program, each.program.partition(".")[0])]
    if not named:
        known = ", ".join(f"{each.program} ({each.pid})" for each in listed)
        silent = [str(each) for each in found if isinstance(each, WatchError)]
        raise WatchError(
            f"no process with a watch is named {name!r}; "
            + "; ".join([f"there are {known}" if known else f"there are none: {_ENABLE}", *silent])
        )
    if len(named) > 1:
        pids = ", ".join(str(each.pid) for each in named)
        raise WatchError(f"{len(named)} processes are named {name!r}: give one of {pids}")
    return connect(named[0].pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # another user's
    return True


def _connected(pid: int, path: Path) -> socket.socket:
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _connect(connected, str(path))
        if not peer.is_own(connected):
            raise WatchError(
                f"{path} belongs to a process of another user: it is not read, since it could "
                "show anything. Remove the file"
            )
    except OSError as error:
        connected.close()
        if isinstance(error, ConnectionRefusedError | FileNotFoundError):
            raise WatchError(f"process {pid} has ended, or has stopped its watch") from None
        raise WatchError(f"cannot connect to process {pid} at {path}: {error}") from error
    except WatchError:
        connected.close()
        raise
    return connected


def _connect(connected: socket.socket, path: str) -> None:
    deadline = Deadline(_CONNECT)
    while True:
        connected.settimeout(deadline.left())
        try:
            connected.connect(path)
            return
        except BlockingIOError:  # the queue of the server is full
            time.sleep(0.02)


def _process(data: Any) -> WatchedProcess:
    try:
        return WatchedProcess(**{name: data[name] for name in WatchedProcess.__dataclass_fields__})
    except (KeyError, TypeError):
        raise WatchError("the agent does not say which process it is: another version?") from None
