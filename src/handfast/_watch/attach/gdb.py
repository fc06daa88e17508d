"""gdb makes an interpreter of Python 3.11 to 3.13 run a script, as memray does it.

Running code at an arbitrary instruction could meet a lock that is held, or a heap that is being changed.
So gdb waits until the process enters one of a few functions that Python calls all the time while it
holds the GIL, and there only adds a pending call; the interpreter makes it between two instructions.
In a process that sleeps there is no next instruction: after an interrupted system call Python looks for
signals and sleeps on. There the pending call is made at once, where a signal handler would be called.

gdb must never be killed while it has breakpoints in the process, because the process would die of them.
To end the wait, the process gets a SIGWINCH, which gdb takes as its reason to stop and does not pass on.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from handfast._watch.attach.target import Target, why_not_permitted
from handfast._watch.error import WatchError

# gdb's attaching interrupts a sleeping epoll_wait, and then Python calls the first of them.
_SAFE = (
    "PyErr_CheckSignals",
    "PyMem_Malloc",
    "PyMem_Calloc",
    "PyObject_Malloc",
    "PyCallable_Check",
    # Before each call that may block, such as `time.sleep`.
    "PyEval_SaveThread",
)

_COMMANDS = """\
set pagination off
set confirm off
set language c
set unwindonsignal on
set print thread-events off
handle all nostop noprint pass
handle SIGWINCH stop print nopass
attach {pid}
{breakpoints}
continue
delete breakpoints
if $_siginfo.si_signo == 5
  call ((int (*)(void *, void *)) Py_AddPendingCall)((void *) PyRun_SimpleString, (void *) "{code}")
  if $pc == (unsigned long) &PyErr_CheckSignals
    call ((int (*)(void)) Py_MakePendingCalls)()
  end
end
detach
quit
"""


def require(target: Target, *, permitted: bool) -> None:
    """Raise unless the caller allows gdb, and the system has it."""
    version = f"{target.python[0]}.{target.python[1]}"
    if not permitted:
        raise WatchError(
            f"process {target.pid} runs Python {version}, which can only be attached to with gdb; it "
            f"stops the process for about a second: handfast attach --gdb {target.pid}"
        )
    if shutil.which("gdb") is None:
        raise WatchError(
            "attaching to Python 3.11 to 3.13 needs gdb (Debian: apt-get install gdb). Or start the "
            "process with HANDFAST_WATCH=1 in its environment"
        )


def inject(target: Target, file: Path, timeout: float) -> bool:
    """Make the process run a file; whether it will."""
    # As hexadecimal digits, no character of the path means anything to gdb, C or Python. Nothing may
    # be raised: the interpreter would raise it wherever the program is.
    name = str(file).encode().hex()
    code = (
        f"try: exec(open(bytes.fromhex('{name}').decode()).read(), dict())\\n"
        "except BaseException: pass\\n"
    )
    breakpoints = "\n".join(f"break *(unsigned long) &{each}" for each in _SAFE)
    commands = file.with_name("commands.gdb")
    commands.write_text(_COMMANDS.format(pid=target.pid, breakpoints=breakpoints, code=code))
    printed = _run(["gdb", "-nx", "-batch", "-x", str(commands)], target.pid, timeout)
    if "Operation not permitted" in printed:
        raise WatchError(why_not_permitted(target.pid))
    added = "$1 = 0" in printed
    if not added and "SIGWINCH" not in printed:
        last = printed.strip().splitlines()[-1:] or ["it said nothing"]
        raise WatchError(f"gdb could not attach to process {target.pid}: {last[0]}")
    return added


def _run(command: list[str], pid: int, timeout: float) -> str:
    # Ctrl-C is for handfast alone: gdb has to remove its breakpoints first.
    gdb = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "DEBUGINFOD_URLS": "", "LC_ALL": "C"},
        start_new_session=True,
    )
    try:
        return gdb.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        return _ended(gdb, pid)
    except BaseException:
        _ended(gdb, pid)
        raise


def _ended(gdb: subprocess.Popen[str], pid: int) -> str:
    """Let gdb remove its breakpoints and go, however long that takes."""
    while True:
        try:
            os.kill(pid, signal.SIGWINCH)
        except ProcessLookupError:
            pass
        try:
            return gdb.communicate(timeout=1)[0]
        except subprocess.TimeoutExpired:
            continue
