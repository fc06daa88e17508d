"""The folder of the sockets: one for each user, that no other user can read or replace.

`$XDG_RUNTIME_DIR/handfast`, or a folder of the user's in the folder for temporary files. In that one
anybody may have made a folder or a symbolic link of the name before, so what is there is checked with
`lstat`: a folder, of this user, mode 0700.

A socket is `PID-START.sock`. It is made under another name and renamed when it listens: so a socket
that refuses a connection has no process behind it, whatever the process id says, and is removed. A
process id alone does not tell: it may be another's by now, or one of another container.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from handfast._watch.connection.process_start import process_start
from handfast._watch.error import WatchError

_NAME_OF_FOLDER = "handfast-{}"
_NAME = re.compile(r"(\d+)-(\d+)\.sock")
# Of a process that was killed between making the socket and renaming it.
_UNFINISHED = re.compile(r"\.\d+-\d+\.new")


def require_unix_sockets() -> None:
    """Raise where there are none: Python on Windows."""
    if not hasattr(socket, "AF_UNIX") or not hasattr(os, "getuid"):
        raise WatchError(
            "this system has no Unix sockets, so no other process can read the watch; in the "
            "process itself handfast.watch.snapshot() works"
        )


def socket_folder(create: bool = False) -> Path:
    """The folder, checked; `create` makes it if it is missing."""
    require_unix_sockets()
    folder = _folder()
    if create:
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise WatchError(
                f"{folder} cannot be created: {error.strerror}. Set XDG_RUNTIME_DIR to a folder "
                "that only you can read"
            ) from error
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        return folder  # no process of this user is watched
    if problem := _problem(found):
        raise WatchError(
            f"{folder} {problem}: other users could read or replace what is in it. Remove it, or "
            "set XDG_RUNTIME_DIR to a folder that only you can read"
        )
    return folder


def _folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and _is_own(runtime):
        return Path(runtime, "handfast")
    return Path(tempfile.gettempdir(), _NAME_OF_FOLDER.format(os.getuid()))


def _folders(pid: int | None) -> list[Path]:
    """The folders to read: the one of this process's environment, and those of others. A service
    has no `XDG_RUNTIME_DIR`, and a login shell has one."""
    own = socket_folder()
    others = dict.fromkeys([*_elsewhere(), *(() if pid is None else _folders_of_process(pid))])
    return [own, *(each for each in others if each != own and _is_private(each))]


def _elsewhere() -> list[Path]:
    uid = os.getuid()
    return [Path(f"/run/user/{uid}/handfast"), Path("/tmp", _NAME_OF_FOLDER.format(uid))]


def _folders_of_process(pid: int) -> Iterator[Path]:
    """Where a process has its socket if its environment is still that of its start (Linux)."""
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        for each in file.read().split(b"\0"):
            name, _, value = each.partition(b"=")
            if name == b"XDG_RUNTIME_DIR":
                yield Path(os.fsdecode(value), "handfast")
            elif name == b"TMPDIR":
                yield Path(os.fsdecode(value), _NAME_OF_FOLDER.format(os.getuid()))


def _is_own(path: str) -> bool:
    """Whether a folder is this user's: after `su` the variable is still that of another."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _is_private(folder: Path) -> bool:
    try:
        return not _problem(os.lstat(folder))
    except (OSError, ValueError):
        return False


def _problem(found: os.stat_result) -> str:
    """Why a folder cannot be used; empty if it can."""
    if not stat.S_ISDIR(found.st_mode):
        return "is no folder"
    if found.st_uid != os.getuid():
        return f"belongs to user {found.st_uid}, and not to user {os.getuid()}"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"has mode {stat.S_IMODE(found.st_mode):04o}, and not 0700"
    return ""


# --- sockets -------------------------------------------------------------------------------------


def listen(backlog: int = 16) -> tuple[socket.socket, Path]:
    """A listening socket of this process, and its path."""
    folder = socket_folder(create=True)
    remove_stale(folder)
    pid = os.getpid()
    name = f"{pid}-{process_start(pid)}"
    path, unfinished = folder / f"{name}.sock", folder / f".{name}.new"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        listening.bind(str(unfinished))
        os.chmod(unfinished, 0o600)
        listening.listen(backlog)
        os.rename(unfinished, path)
    except OSError as error:
        listening.close()
        with suppress(OSError):
            os.unlink(unfinished)
        raise WatchError(
            f"cannot listen at {path}: {error}. Set XDG_RUNTIME_DIR to a folder with a short path "
            "that you can write to"
        ) from error
    return listening, path


def sockets(pid: int | None = None) -> Iterator[tuple[int, Path]]:
    """The process id and the path of each socket, or of those of one process, stale ones among
    them."""
    for folder in _folders(pid):
        for other, path in _sockets_in(folder):
            if pid in (None, other):
                yield other, path


def _sockets_in(folder: Path) -> Iterator[tuple[int, Path]]:
    with suppress(FileNotFoundError):
        for entry in sorted(os.listdir(folder)):
            if found := _NAME.fullmatch(entry):
                yield int(found[1]), folder / entry


def remove_stale(folder: Path) -> None:
    """Remove the sockets to which no process listens."""
    for _, path in _sockets_in(folder):
        remove_if_stale(path)
    with suppress(OSError):
        for entry in os.listdir(folder):
            if _UNFINISHED.fullmatch(entry) and refuses(folder / entry):
                with suppress(OSError):
                    os.unlink(folder / entry)


def remove_if_stale(path: Path) -> bool:
    """Remove a socket to which no process listens; whether it was one."""
    if not refuses(path):
        return False
    with suppress(OSError):
        os.unlink(path)
    return True


def refuses(path: Path) -> bool:
    """Whether no process listens to this socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:  # it is gone; or its queue is full, so that a process does listen
            return False
    return False
