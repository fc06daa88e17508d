"""Report 5: a synchronous program copies channels into a sheet and prefetches the next ones."""

from examples.example import Claim, Example

__all__ = ["EXAMPLE"]

_EXPLORE = "handfast explore examples.prefetch.explored:"

EXAMPLE = Example(
    name="prefetch",
    number=5,
    title="Background work in a synchronous program",
    story=(
        "A program copies channels into a sheet. While a thread writes one, an event loop in another "
        "thread fetches the next ones. When the program has enough rows, it ends."
    ),
    claims=(
        Claim(
            "Tasks leak because they are not tracked.",
            "Tracking is not enough. They must be joined before the session, the pool and the loop that "
            "they use are closed. If the fetch wins the race, nothing is visible: it breaks when the "
            "loop is 20 milliseconds late.",
            f"{_EXPLORE}as_reported",
        ),
        Claim(
            "`create_task(gather(...))` is tracked properly.",
            "It raises `TypeError`: `gather` does not return a coroutine. No channel is copied any more, "
            "and the gathered tasks have already started: they keep running and are in no set.",
            f"{_EXPLORE}as_proposed",
        ),
        Claim(
            "Cleanup cancels all tasks.",
            "Even if `gather` were a task, it would be cancelled but not joined, from another thread, which "
            "does not wake the loop, or on a stopped loop, where cancelling has no effect. The printed "
            "number counts `gather` calls, whether they have ended or not.",
            f"{_EXPLORE}as_meant",
        ),
        Claim(
            "No resource leaks.",
            "Two fetches wait on a loop that no longer runs, with a session that is never closed.",
            "python -m examples prefetch",
        ),
        Claim(
            "Only the clean-up was missing.",
            "A channel that is needed while it is being prefetched is fetched a second time.",
            f"{_EXPLORE}as_reported_fetches_twice",
        ),
    ),
    options={"schedules": 300},
    needs=("aiohttp",),
)
