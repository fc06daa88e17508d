"""Seed 004: a program that is not async copies channels into a sheet, and fetches what comes next."""

from holdfast.casebook.case import Case, Claim

__all__ = ["CASE"]

_EXPLORE = "holdfast explore holdfast.casebook.prefetch.schedules:"

CASE = Case(
    name="prefetch",
    seed="004",
    title="Background work in a program that is not async",
    story=(
        "A program copies channels into a sheet. While a thread writes one, an event loop in another "
        "thread fetches those that come next. Then the program has what it wants, and ends."
    ),
    claims=(
        Claim(
            "Tasks leak because nobody tracks them.",
            "To know them is not enough. Somebody has to wait for their end, before the session, the "
            "pool and the loop that they use are gone. If the fetch wins the race all looks well: "
            "it breaks on a loop that is 20 milliseconds late.",
            f"{_EXPLORE}as_reported",
        ),
        Claim(
            "`create_task(gather(...))` is tracked properly.",
            "It raises `TypeError`: `gather` is no coroutine. No channel is copied any more, and the "
            "children of the bundle have been started: they run on, and stand in no set.",
            f"{_EXPLORE}as_proposed",
        ),
        Claim(
            "Cleanup cancels all tasks.",
            "Had the bundle been a task, it would be asked to end, and not waited for; from another "
            "thread, which does not wake the loop; or on a loop that has stopped, where nothing hears "
            "it. The number that is printed counts bundles, whether they have ended or not.",
            f"{_EXPLORE}as_meant",
        ),
        Claim(
            "No resource leaks.",
            "Two fetches stand on a loop that nobody runs, with a session that nobody closes.",
            "holdfast tour prefetch",
        ),
        Claim(
            "All that was missing is the clean-up.",
            "A channel that is wanted while it is being fetched is fetched a second time.",
            f"{_EXPLORE}as_reported_asks_twice",
        ),
    ),
    options={"schedules": 300},
    needs=("aiohttp",),
)
