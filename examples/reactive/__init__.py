"""Report 3: a reactive pipeline that runs graphs on an event loop."""

from examples.example import Claim, Example

__all__ = ["EXAMPLE"]

_EXPLORE = "handfast explore examples.reactive.explored:"

EXAMPLE = Example(
    name="reactive",
    number=3,
    title="Tasks from other threads",
    story=(
        "reactivex's `flat_map` starts a run of a graph for each message, on an event loop that "
        "runs in another thread, and tracks the tasks in a plain set."
    ),
    claims=(
        Claim(
            "The set of tasks is corrupted, because several threads change it without a lock.",
            "The set does not break. `ensure_future(..., loop=loop)` from another thread does: it does "
            "not wake the loop, so the run starts only when something else wakes it.",
            "python -m examples reactive",
        ),
        Claim(
            "A lock around every access to the set fixes it.",
            "The clean-up still misses messages that arrive while it waits, or after it.",
            f"{_EXPLORE}as_proposed",
        ),
        Claim(
            "The report does not mention a run that fails.",
            "`from_future` turns its error into an error of the stream, which ends: later messages get "
            "no answer.",
            "python -m examples reactive",
        ),
    ),
    options={"schedules": 200},
    needs=("reactivex", "langgraph"),
)
