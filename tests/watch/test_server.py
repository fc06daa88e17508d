"""The socket: what clients get, and what hostile ones cannot do."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from handfast import watch
from handfast._watch.connection import client, peer, protocol, server
from handfast._watch.connection.protocol import Deadline, read_answer, write_frame
from handfast.cli import ps
from handfast.watch import WatchError

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs Unix sockets")


@pytest.fixture
def path(runtime_folder: Path) -> Iterator[str]:
    """The socket of an agent that runs in this process."""
    with watch.serve("bot") as served:
        yield served.socket


def connected(path: str) -> socket.socket:
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    raw.connect(path)  # with a timeout it would fail while the queue is full
    raw.settimeout(30)
    return raw


def answer_to(raw: socket.socket, request: bytes) -> Any:
    write_frame(raw, request, Deadline(30))
    return json.loads(read_answer(raw, Deadline(30)))


def works() -> bool:
    """Whether the agent answers."""
    with watch.connect(os.getpid()) as connection:
        return connection.process.pid == os.getpid()


def until_disconnected(raw: socket.socket) -> bytes:
    received = b""
    with suppress(ConnectionError):
        while part := raw.recv(65536):
            received += part
    return received


def test_a_process_is_found_by_its_id_and_by_its_name(path: str) -> None:
    (process,) = watch.processes()
    assert (process.pid, process.program) == (os.getpid(), "bot")
    assert process.python == sys.version.split()[0]
    for way in (os.getpid(), str(os.getpid()), "bot"):
        with watch.connect(way) as connection:
            assert connection.process.pid == os.getpid()
            taken = connection.summary()
            assert taken.tasks == ()
            assert taken.process.watched_for > 0


def test_a_snapshot_over_the_socket_is_that_of_the_process(path: str) -> None:
    async def idle() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        tasks = [asyncio.create_task(idle(), name=f"idle {n}\x1b[2J") for n in range(5)]
        await asyncio.sleep(0)
        own = watch.snapshot()
        far = await asyncio.to_thread(far_snapshot, 1000)
        assert [task.id for task in far.tasks] == [task.id for task in own.tasks]
        assert {task.id for task in far.tasks} >= {id(task) for task in tasks}
        assert far.tasks_left_out == 0
        few = await asyncio.to_thread(far_snapshot, 2)
        assert [task.id for task in few.tasks] == [task.id for task in own.tasks[:2]]
        assert few.tasks_left_out == few.alive - 2
        (shown,) = (task for task in far.tasks if task.id == id(tasks[0]))
        assert shown.name == "idle 0?[2J", "no terminal codes"
        assert shown.waits_for == "Event.wait"

    def far_snapshot(tasks: int) -> watch.Snapshot:
        with watch.connect(os.getpid()) as connection:
            return connection.snapshot(tasks)

    asyncio.run(main())


def test_verbs_only_read_and_an_unknown_one_is_refused(path: str) -> None:
    with connected(path) as raw:
        answer = answer_to(raw, b'{"verb": "eval", "code": "1"}')
        assert answer == {"error": "there is no such verb; there are hello, snapshot, summary"}
        assert answer_to(raw, b'{"verb": "hello"}')["result"]["pid"] == os.getpid()


@pytest.mark.parametrize("tasks", ["-1", "1e9", "99999999", '"all"', "null", "true", "[1]"])
def test_a_number_of_tasks_that_is_none_is_refused(path: str, tasks: str) -> None:
    with connected(path) as raw:
        answer = answer_to(raw, f'{{"verb": "snapshot", "tasks": {tasks}}}'.encode())
        assert answer == {"error": "tasks is a number from 0 to 20,000"}
    assert works()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\xff" * 4096,
        struct.pack(">I", 5) + b"hello",
        struct.pack(">I", 2) + b"[]",
        struct.pack(">I", 11) + b'{"verb": 1}',
        struct.pack(">I", 4000) + b"[" * 4000,
        struct.pack(">I", 1 << 31),
    ],
    ids=["http", "bytes", "no json", "no object", "no verb", "nested", "too long"],
)
def test_garbage_is_answered_with_an_error_and_disconnected(path: str, garbage: bytes) -> None:
    with connected(path) as raw:
        raw.sendall(garbage)
        assert b'{"error": ' in until_disconnected(raw)
    assert works()


def test_half_a_frame_costs_the_client_its_connection(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "IDLE", 0.2)
    with connected(path) as raw:
        raw.sendall(struct.pack(">I", 100) + b'{"verb"')
        assert until_disconnected(raw) == b""
    assert works()


def test_a_client_that_closes_in_the_middle_of_a_frame(path: str) -> None:
    for part in (b"", b"\0\0", struct.pack(">I", 100) + b"{"):
        with connected(path) as raw:
            raw.sendall(part)
    assert works()


def test_a_client_that_never_reads_loses_its_connection(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "ANSWER", 0.2)
    request = b'{"verb": "summary"}'
    frame = struct.pack(">I", len(request)) + request

    async def main() -> None:
        # Its answers fill the buffers of the socket, and then the server waits for it.
        with connected(path) as raw:
            await asyncio.to_thread(_send_until_refused, raw, frame)
        assert await asyncio.to_thread(works)

    asyncio.run(main())


def _send_until_refused(raw: socket.socket, frame: bytes) -> None:
    with suppress(OSError):
        while True:
            raw.sendall(frame)


def test_four_clients_are_served_and_a_fifth_gets_an_error(path: str) -> None:
    with ExitStack() as stack:
        four = [stack.enter_context(watch.connect(os.getpid())) for _ in range(4)]
        with pytest.raises(WatchError, match=f"process {os.getpid()}: four clients"):
            watch.connect(os.getpid())
        assert all(each.summary().process.pid == os.getpid() for each in four)
    # The connections are closed; the server notices in its own time.
    with connected_soon() as connection:
        assert connection.process.pid == os.getpid()


def connected_soon() -> client.Client:
    while True:
        with suppress(WatchError):
            return watch.connect(os.getpid())


def test_ten_thousand_connections(path: str) -> None:
    """The loop of the program goes on meanwhile, and the agent is alive after it."""
    turns = 0

    async def main() -> None:
        nonlocal turns
        flood = asyncio.ensure_future(asyncio.to_thread(connect_often))
        while not flood.done():
            await asyncio.sleep(0)
            turns += 1
        await flood

    def connect_often() -> None:
        for _ in range(10_000):
            connected(path).close()

    asyncio.run(main())
    assert turns > 1000
    while not works():  # the last of them are still in the queue
        pass
    assert threading.active_count() < 20


# --- another user --------------------------------------------------------------------------------

OTHER_USER = """
import os, socket, sys
os.setgroups([])
os.setgid(54321)
os.setuid(54321)
connected = socket.socket(socket.AF_UNIX)
connected.settimeout(60)
try:
    connected.connect(sys.argv[1])
    connected.sendall(b'\\0\\0\\0\\x12{"verb": "hello"}')
    print("got", connected.recv(100))
except OSError as error:
    print(type(error).__name__)
"""
AS_ROOT = pytest.mark.skipif(
    getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can become another user"
)


def as_other_user(path: str) -> str:
    command = [sys.executable, "-I", "-S", "-c", OTHER_USER, path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@AS_ROOT
def test_another_user_cannot_open_the_socket(path: str) -> None:
    assert as_other_user(path) == "PermissionError"
    assert works()


@AS_ROOT
def test_another_user_who_can_open_the_socket_gets_nothing(path: str) -> None:
    # As if the modes of the folder and the socket had been changed.
    opened = [Path(path), *Path(path).parents]
    modes = [(each, each.stat().st_mode) for each in opened]
    for each, mode in modes:
        os.chmod(each, mode | 0o777 if each in opened[:3] else mode | 0o011)
    try:
        assert as_other_user(path) in ("got b''", "ConnectionResetError", "BrokenPipeError")
    finally:
        for each, mode in modes:
            os.chmod(each, mode)
    assert works()


@AS_ROOT
def test_a_client_does_not_read_from_another_users_socket(
    runtime_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (runtime_folder / "handfast").mkdir(mode=0o700)
    path = runtime_folder / "handfast" / "4711-0.sock"
    source = textwrap.dedent("""
        import os, socket, sys
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(sys.argv[1])
        os.setgid(54321); os.setuid(54321)
        listening.listen()
        print("ready", flush=True)
        sys.stdin.read()
    """)
    command = [sys.executable, "-I", "-S", "-c", source, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as impostor:
        assert impostor.stdout is not None
        assert impostor.stdout.readline() == "ready\n"
        with pytest.raises(WatchError, match="belongs to a process of another user"):
            watch.connect(4711)
        assert watch.processes() == []
        impostor.kill()


def test_a_system_that_does_not_name_the_peer_serves_no_one(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "plan9")
    first, second = socket.socketpair()
    with first, second:
        assert peer.uid_of_peer(first) is None
        assert not peer.is_own(first)


def test_the_credentials_of_macos_are_read_as_its_kernel_writes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Connected:
        def __init__(self, answer: bytes) -> None:
            self.answer = answer

        def getsockopt(self, level: int, option: int, size: int) -> bytes:
            assert (level, option) == (0, 1)
            return self.answer

    monkeypatch.setattr(sys, "platform", "darwin")
    answers: list[tuple[bytes, int | None]] = [
        (struct.pack("=IIh", 0, 501, 1) + bytes(66), 501),
        (struct.pack("=II", 7, 501), None),
        (b"", None),
    ]
    for answer, uid in answers:
        assert peer.uid_of_peer(Connected(answer)) == uid  # type: ignore[arg-type]


# --- the client's errors -------------------------------------------------------------------------


def test_errors_say_what_is_wrong_and_what_to_do(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WatchError, match=f"process {os.getpid()} has no watch: start it with"):
        watch.connect(os.getpid())
    with pytest.raises(WatchError, match="there is no process 0; `handfast ps` lists"):
        watch.connect(0)
    with pytest.raises(WatchError, match="no process with a watch is named 'bot'; there are none"):
        watch.connect("bot")
    with watch.serve("other"):
        with pytest.raises(WatchError, match=rf"there are other \({os.getpid()}\)"):
            watch.connect("bot")
        two = watch.processes() * 2
        monkeypatch.setattr(client, "answers", lambda: two)
        with pytest.raises(WatchError, match="2 processes are named 'other': give one of"):
            watch.connect("other")


def test_a_process_that_ends_is_named(path: str) -> None:
    connection = watch.connect(os.getpid())
    from handfast._watch.agent import agent

    agent.stop()
    with connection, pytest.raises(WatchError, match="has ended, or has stopped its watch"):
        connection.summary()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "has ended, or has stopped its watch"),
        (struct.pack(">I", 1 << 30), "gives no answer: a frame of 1,073,741,824 bytes"),
        (struct.pack(">I", 3) + b"{} " + bytes(4), "an answer without a result"),
        (struct.pack(">I", 2) + b"[]" + bytes(4), "an answer without a result"),
        (struct.pack(">I", 2) + b"{]" + bytes(4), "gives no answer"),
        (struct.pack(">I", 13) + b'{"result":{}}' + bytes(4), "another version"),
    ],
    ids=["closed", "too long", "empty", "list", "no json", "no process"],
)
def test_an_answer_that_is_none_is_an_error(
    runtime_folder: Path, answer: bytes, message: str
) -> None:
    (runtime_folder / "handfast").mkdir(mode=0o700)
    path = runtime_folder / "handfast" / f"{os.getpid()}-0.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        thread = threading.Thread(target=_answer_once, args=(listening, answer))
        thread.start()
        with pytest.raises(WatchError, match=message):
            client.Client(os.getpid(), path)
        thread.join()


def _answer_once(listening: socket.socket, answer: bytes) -> None:
    accepted, _ = listening.accept()
    with accepted:
        protocol.read_frame(accepted, Deadline(30))
        accepted.sendall(answer)


def test_a_process_that_is_stopped_does_not_hold_up_a_list(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "_HELLO", 0.01)
    (runtime_folder / "handfast").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(runtime_folder / "handfast" / "1-0.sock"))
        listening.listen()
        assert watch.processes() == []
        with pytest.raises(WatchError, match=r"'shop'; .*; process 1 does not answer"):
            watch.connect("shop")
        assert ps.main([]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("handfast: process 1 does not answer: its interpreter is held up")


def test_a_process_that_does_not_answer_is_an_error(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_ANSWER", 0.05)
    (runtime_folder / "handfast").mkdir(mode=0o700)
    path = runtime_folder / "handfast" / f"{os.getpid()}-0.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()
        with pytest.raises(WatchError, match="does not answer: its interpreter is held up"):
            client.Client(os.getpid(), path)
