"""The folder of the sockets: private, checked, and without stale sockets."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from handfast._watch.connection import socket_folder
from handfast._watch.connection.socket_folder import listen, remove_if_stale, sockets
from handfast._watch.error import WatchError

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs Unix sockets")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_the_folder_and_the_socket_are_private_whatever_the_umask(runtime_folder: Path) -> None:
    before = os.umask(0)
    try:
        listening, path = listen()
    finally:
        os.umask(before)
    with listening:
        assert path.parent == runtime_folder / "handfast"
        assert mode_of(path.parent) == 0o700
        assert mode_of(path) == 0o600
        assert path.name.startswith(f"{os.getpid()}-")
        assert list(sockets()) == [(os.getpid(), path)]
        assert os.listdir(path.parent) == [path.name]


def test_without_a_runtime_folder_it_is_a_folder_of_the_users(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(runtime_folder))
    assert list(sockets()) == []
    assert os.listdir(runtime_folder) == [], "looking creates nothing"
    listening, path = listen()
    listening.close()
    assert path.parent == runtime_folder / f"handfast-{os.getuid()}"
    assert mode_of(path.parent) == 0o700


@pytest.mark.parametrize("value", ["relative", "/nonexistent/folder"])
def test_a_runtime_folder_that_is_not_there_is_not_used(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert socket_folder.socket_folder().parent == tmp_path


def test_the_sockets_of_other_environments_are_found_in_private_folders(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [runtime_folder / name for name in ("private", "public", "missing")]
    monkeypatch.setattr(socket_folder, "_elsewhere", lambda: others)
    for folder, mode in zip(others[:2], (0o700, 0o755), strict=True):
        folder.mkdir()
        folder.chmod(mode)
        (folder / "7-0.sock").touch()
    assert list(sockets()) == list(sockets(7)) == [(7, others[0] / "7-0.sock")]
    assert list(sockets(8)) == []
    listening, path = listen()
    with listening:
        assert path.parent == runtime_folder / "handfast"
        assert (os.getpid(), path) in sockets()


def test_a_folder_that_cannot_be_created_names_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(WatchError, match=r"cannot be created: No such file .* Set XDG_RUNTIME_DIR"):
        listen()


def test_a_folder_that_others_may_read_is_refused(runtime_folder: Path) -> None:
    (runtime_folder / "handfast").mkdir()
    os.chmod(runtime_folder / "handfast", 0o755)
    for use in (listen, lambda: list(sockets())):
        with pytest.raises(WatchError, match="mode 0755, and not 0700"):
            use()


def test_a_symbolic_link_is_refused(runtime_folder: Path, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    (runtime_folder / "handfast").symlink_to(tmp_path)
    with pytest.raises(WatchError, match="is no folder"):
        listen()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give it away")
def test_a_folder_of_another_user_is_refused(runtime_folder: Path) -> None:
    (runtime_folder / "handfast").mkdir(mode=0o700)
    os.chown(runtime_folder / "handfast", 12345, 12345)
    with pytest.raises(WatchError, match="belongs to user 12345"):
        listen()


def test_a_path_that_is_too_long_names_the_way_out(
    runtime_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = runtime_folder / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    with pytest.raises(WatchError, match="Set XDG_RUNTIME_DIR"):
        listen()
    assert os.listdir(long / "handfast") == []


def test_a_socket_without_a_process_is_removed_and_no_other(runtime_folder: Path) -> None:
    listening, path = listen()
    stale = path.with_name("1-1.sock")  # a process with this id is alive, and not ours
    unfinished = path.with_name(".2-2.new")
    foreign = path.with_name("notes.txt")
    foreign.write_text("kept")
    for each in (stale, unfinished):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
            left.bind(str(each))
    with listening:
        assert {pid for pid, _ in sockets()} == {1, os.getpid()}
        assert not remove_if_stale(path)
        socket_folder.remove_stale(path.parent)
        assert sorted(os.listdir(path.parent)) == sorted([path.name, "notes.txt"])


def test_a_socket_whose_queue_is_full_is_not_stale(runtime_folder: Path) -> None:
    listening, path = listen(backlog=0)
    waiting = []
    with listening:
        for _ in range(5):
            each = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            each.setblocking(False)
            waiting.append(each)
            each.connect_ex(str(path))
        assert not remove_if_stale(path)
        for each in waiting:
            each.close()


def test_a_system_without_unix_sockets_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(WatchError, match=r"has no Unix sockets.*snapshot\(\) works"):
        listen()
