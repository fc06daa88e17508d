"""Seed 001: a child process that talks in lines of JSON, and the task that drains its stderr."""

from holdfast.casebook.case import Case, Claim

__all__ = ["CASE"]

_EXPLORE = "holdfast explore holdfast.casebook.child.schedules:"

CASE = Case(
    name="child",
    seed="001",
    title="A child and the task that drains it",
    story=(
        "A program keeps a child process and asks it things, a line of JSON for a line of JSON. A task "
        "drains the child's stderr. The child is restarted when a user wants it, also in the middle "
        "of a question. `_kill` clears `self._proc` and cancels the drain after."
    ),
    claims=(
        Claim(
            "It is no active bug: whichever of `_kill` and the drain resumes first, it works.",
            "The drain is not the only one that reads `self._proc`. A restart and a question share it "
            "too: what one clears, both refill, and a child runs on that nobody tracks.",
            f"{_EXPLORE}as_reported",
        ),
        Claim(
            "Cancel the consumer before destroying what it consumes.",
            "Then the child's last words have no reader. It blocks on a full pipe, is killed in the "
            "middle of saving, and `wait()` may never return. Signal first, then drain to the end.",
            f"{_EXPLORE}as_proposed",
        ),
        Claim(
            "`except Exception` around the read is right, as long as nobody widens it.",
            "It ends the drain at the first byte that is no UTF-8, or the first line over 64 KiB. The "
            "child then blocks on its stderr for ever, and no question is answered.",
            f"{_EXPLORE}noisy_as_reported",
        ),
        Claim(
            "Keeping a local `proc = self._proc` in the drain would make it go stale.",
            "It is what mends it: one object for each child, and whoever drains, asks or ends it holds "
            "that one. There is nothing left to go stale.",
            f"{_EXPLORE}as_it_should_be",
        ),
    ),
    options={"schedules": 250},
)
