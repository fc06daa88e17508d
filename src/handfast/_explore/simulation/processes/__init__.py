"""Scripted child processes: what a program starts on the explored loop, simulated in memory.

- `script`            the steps (`Says`, `Waits`, `Exits`, ...), `child` and the look-up of scripts
- `scripted_process`  carries out a script; `pending` is what it did and is not visible yet
- `pipes`             bytes in order, limited capacity, EOF and broken pipes, as in a kernel
- `process_table`     invented pids, groups, signals, zombies; `os_patches` sends `os.kill` there
- `pipe_transports`, `popen`   asyncio's own transports on top of these
- `launch`, `loop_mixin`       the side of the loop

Exit and EOF are two independent events, as with a real child. No real process is ever started.
"""

from handfast._explore.simulation.processes.loop_mixin import Children

__all__ = ["Children"]
