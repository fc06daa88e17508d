"""Seed 002: a reactive pipeline that runs graphs on an event loop."""

from holdfast.casebook.case import Case, Claim

__all__ = ["CASE"]

_EXPLORE = "holdfast explore holdfast.casebook.reactive.schedules:"

CASE = Case(
    name="reactive",
    seed="002",
    title="Tasks from other threads",
    story=(
        "A `flat_map` of reactivex starts a run of a graph for each message, on an event loop that "
        "belongs to another thread, and tracks the tasks in a plain set."
    ),
    claims=(
        Claim(
            "The set of tasks is corrupted, since it is changed from several threads without a lock.",
            "The set is not what breaks. `ensure_future(..., loop=loop)` from a foreign thread is: it "
            "does not wake the loop, so the run starts when something else does.",
            "holdfast tour reactive",
        ),
        Claim(
            "A lock around every touch of the set mends it.",
            "The clean-up still misses what comes while it waits, or after it.",
            f"{_EXPLORE}as_proposed",
        ),
        Claim(
            "Nothing is said of a run that fails.",
            "`from_future` turns it into an error of the stream, which ends: the messages after it get "
            "no answer.",
            "holdfast tour reactive",
        ),
    ),
    options={"schedules": 200},
    needs=("reactivex", "langgraph"),
)
