"""Report 1: a chat bot captures the output of `!` commands, one capture for each user and thread."""

from examples.example import Claim, Example

__all__ = ["EXAMPLE"]

_EXPLORE = "handfast explore examples.captures.explored:"

EXAMPLE = Example(
    name="captures",
    number=1,
    title="A task for each key",
    story=(
        "A chat bot runs what users send after a `!` and edits its answer as the output grows. A dict "
        "maps (user, thread) to the capturing task; a new command cancels the task of the last one."
    ),
    claims=(
        Claim(
            "The identity check in `finally` leaks the entry of a task that was replaced.",
            "It leaks nothing there: the entry belongs to the new task. What leaks is a task: two handlers "
            "interleave at the `await` between cancelling the old task and storing the new one.",
            f"{_EXPLORE}as_reported",
        ),
        Claim(
            "Popping without a check is the simplest fix.",
            "It evicts the successor: the third command no longer cancels the second, and both keep "
            "editing.",
            f"{_EXPLORE}as_proposed",
        ),
        Claim(
            "Cancelling before creating already protects the new task.",
            "`cancel()` is a request. The old task has ended when it has been joined, and a task that is "
            "cancelled before its first step never reaches its `finally`.",
            f"{_EXPLORE}fixed",
        ),
    ),
    options={"schedules": 200},
    needs=("aiohttp", "telegram"),
)
