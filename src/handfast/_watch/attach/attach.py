"""`attach`: check the process, inject the script, wait until the agent answers."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from handfast._watch.attach import gdb as by_gdb
from handfast._watch.attach.injected import script
from handfast._watch.attach.target import Target, examine, why_not_permitted
from handfast._watch.attach.wake import wake
from handfast._watch.connection.client import connect
from handfast._watch.error import WatchError

_POLL = 0.05


def attach(pid: int, *, gdb: bool = False, timeout: float = 30.0) -> None:
    """Start the watch in a process of this user, unless it is watched already.

    Parameters:
        pid: the process. It must run the minor version of Python that this process runs.
        gdb: allow gdb, which Python 3.11 to 3.13 need.
        timeout: how long to wait until the process runs the script, in seconds.

    Raises:
        WatchError: it is impossible; the message says why, and what to do.
    """
    if _is_watched(pid):
        return
    target = examine(pid)
    remote = target.python >= (3, 14)
    if not remote:
        by_gdb.require(target, permitted=gdb)
    deadline = time.monotonic() + timeout
    folder = Path(tempfile.mkdtemp(prefix="handfast-attach-"))
    errors, file = folder / "error", folder / "start.py"
    injected = False
    try:
        file.write_text(script(folder, errors), encoding="utf-8")
        if remote:
            _remote_exec(target, file)
            injected = True
        else:
            injected = by_gdb.inject(target, file, timeout)
        while not _is_watched(pid):
            _require_hope(pid, errors)
            if time.monotonic() >= deadline:
                raise WatchError(_late(pid, injected))
            time.sleep(_POLL)
        injected = False
    finally:
        # A process that sleeps reads the script when it wakes, and complains if it is gone.
        if not injected or errors.exists() or not _exists(pid):
            shutil.rmtree(folder, ignore_errors=True)


def _is_watched(pid: int) -> bool:
    with suppress(WatchError), connect(pid):
        return True
    return False


def _remote_exec(target: Target, file: Path) -> None:
    try:
        # Since 3.14; `examine` has compared the versions.
        sys.remote_exec(target.pid, str(file))  # type: ignore[attr-defined,unused-ignore]
    except PermissionError:
        raise WatchError(why_not_permitted(target.pid)) from None
    except (OSError, RuntimeError) as error:
        raise WatchError(
            f"process {target.pid} cannot be attached to: {error}. It may have been started with "
            "PYTHON_DISABLE_REMOTE_DEBUG or -X disable_remote_debug"
        ) from None
    wake(target.pid)


def _require_hope(pid: int, errors: Path) -> None:
    """Raise if the script has failed, or the process has ended."""
    if errors.exists():
        lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = lines[-1] if lines else "for an unknown reason"
        raise WatchError(f"the watch cannot be started in process {pid}: {last}")
    if not _exists(pid):
        raise WatchError(f"process {pid} has ended")


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() or not Path("/proc/self").exists()


def _late(pid: int, injected: bool) -> str:
    return (
        f"process {pid} has not run Python code since: it sleeps, or an extension module keeps it "
        "busy. "
    ) + (
        "Its watch starts as soon as it does"
        if injected
        else "Attach again while it works, such as during a request"
    )
