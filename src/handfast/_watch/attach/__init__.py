"""Starts the agent in a process that runs already and was not prepared for it.

    attach    the steps: check, inject, wait until the agent answers
    target    what process it is, and why it cannot be attached to
    injected  the script that the other process runs
    gdb       Python 3.11 to 3.13: gdb makes the interpreter run it
    wake      wakes a process that sleeps in the kernel, so that it runs it now

From Python 3.14 on, `sys.remote_exec` makes the interpreter run it.
"""

from __future__ import annotations

from handfast._watch.attach.attach import attach

__all__ = ["attach"]
