"""When a process was started: it tells two processes with one id apart."""

from __future__ import annotations


def process_start(pid: int) -> int:
    """The start of a process in clock ticks since the boot (Linux); 0 if that cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
        # The second field, the name, is in parentheses and may hold any character.
        return int(text.rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
