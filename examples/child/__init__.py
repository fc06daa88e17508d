"""Report 2: a child process that answers lines of JSON, and the task that drains its stderr."""

from examples.example import Claim, Example

__all__ = ["EXAMPLE"]

_EXPLORE = "handfast explore examples.child.explored:"

EXAMPLE = Example(
    name="child",
    number=2,
    title="A child and the task that drains it",
    story=(
        "A program keeps a child process that answers each line of JSON with another. A task drains "
        "the child's stderr. The user may restart the child at any time, also while a request is "
        "pending. `_kill` clears `self._proc` and then cancels the drain."
    ),
    claims=(
        Claim(
            "It is no active bug: it works whichever of `_kill` and the drain resumes first.",
            "The drain is not the only reader of `self._proc`. A restart and a request share it: one "
            "clears it, both start a child, and one of the two children is no longer tracked.",
            f"{_EXPLORE}as_reported",
        ),
        Claim(
            "Cancel the consumer before destroying what it consumes.",
            "Then nothing reads what the child writes while it ends. It blocks on a full pipe, is killed "
            "while it saves, and `wait()` may never return. Signal first, then drain to the end.",
            f"{_EXPLORE}as_proposed",
        ),
        Claim(
            "`except Exception` around the read is right, as long as it is not widened.",
            "It ends the drain at the first byte that is not UTF-8, or the first line over 64 KiB. The "
            "child then blocks on its stderr forever, and no request is answered.",
            f"{_EXPLORE}noisy_as_reported",
        ),
        Claim(
            "Keeping a local `proc = self._proc` in the drain would make it go stale.",
            "It is the fix: one object for each child, and the drain, the request and the shutdown hold "
            "that object. Nothing is left that could go stale.",
            f"{_EXPLORE}fixed",
        ),
    ),
    options={"schedules": 250},
)
