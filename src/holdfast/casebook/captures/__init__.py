"""Seed 000: a chat bot captures the output of `!` commands, one capture for each user and thread."""

from holdfast.casebook.case import Case, Claim

__all__ = ["CASE"]

_EXPLORE = "holdfast explore holdfast.casebook.captures.schedules:"

CASE = Case(
    name="captures",
    seed="000",
    title="A task for each key",
    story=(
        "A chat bot runs what users send after a `!` and edits its answer as the output grows. A dict "
        "maps (user, thread) to the task that captures; a new command cancels the one before."
    ),
    claims=(
        Claim(
            "The identity check in `finally` leaks the entry of a task that was replaced.",
            "It leaks nothing there: the entry is the successor's. What leaks is a task that two "
            "handlers lose between them, at the `await` between cancelling the old and storing the new.",
            f"{_EXPLORE}as_reported",
        ),
        Claim(
            "Popping without a check is the simplest fix.",
            "It evicts the successor: the third command no longer cancels the second, and both go on "
            "editing.",
            f"{_EXPLORE}as_proposed",
        ),
        Claim(
            "Cancelling before creating already keeps a new task from being poisoned.",
            "Cancel is a request. The old task is over when it has been joined, and a task that is "
            "cancelled before its first step never comes to its `finally`.",
            f"{_EXPLORE}as_it_should_be",
        ),
    ),
    options={"schedules": 200},
    needs=("aiohttp", "telegram"),
)
