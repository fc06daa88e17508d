"""Seed 003: phases of an agent over the stream of an SDK that yields inside a task group."""

from holdfast.casebook.case import Case, Claim

__all__ = ["CASE"]

_SCHEDULES = "holdfast explore holdfast.casebook.phases.schedules:"
_REAL = "holdfast stress holdfast.casebook.phases.real:"

CASE = Case(
    name="phases",
    seed="003",
    title="A stream that yields inside a task group",
    story=(
        "An orchestrator runs phases. Each reads the messages of an SDK, which come from a child "
        "process, searches where the agent asks for it, and is over at the first result. Errors "
        "whose text names a task group are taken for noise, and a success is made up."
    ),
    claims=(
        Claim(
            "The errors are noise of a race in the clean-up of task groups.",
            "There is no race: a task group joins its children. What comes in a group is what has "
            "failed inside, here the CLI; the wrapper makes a success of it.",
            f"{_SCHEDULES}as_reported",
        ),
        Claim(
            "`TaskGroup` cancellation runs clean-up in a different task.",
            "The stream yields inside the group. Whoever stops reading leaves the group open, and "
            "the collector closes it later, in a task of its own.",
            "holdfast check src/holdfast/casebook/phases/sdk.py",
        ),
        Claim(
            "Shield the clean-up: `await asyncio.shield(context.cleanup())`.",
            "`shield` starts a task: the group is closed in another one once more. And a cancel "
            "meanwhile ends the wait, while the child lives on.",
            f"{_SCHEDULES}as_proposed --cancel",
        ),
        Claim(
            "`ResourceTracker.track_resource` tracks a resource while it is in use.",
            "It is a bare async generator: `async with` raises a TypeError.",
            f"{_SCHEDULES}tracker_as_written",
        ),
        Claim(
            "`verify_cleanup_completion` confirms that everything was cleaned up.",
            "It asks the tracker for `get_active_resources`, which it has not; and a set of names "
            "does not say who is alive. The owner that has waited for them does.",
            f"{_SCHEDULES}verification_as_written",
        ),
        Claim(
            "`analyze_taskgroup_error` tells clean-up errors from operational ones.",
            "It looks at one level and goes by kind and text, so an error inside two groups counts "
            "as clean-up. In which phase it was raised is known only where that happens.",
            f"{_SCHEDULES}analysis_as_written",
        ),
        Claim(
            "HTTP sessions of a search leak when a task group cancels them.",
            "They do not: `async with` closes them in the task that has opened them.",
            f"{_REAL}search_as_reported -n 200",
        ),
    ),
    options={"schedules": 300, "cancel": True},
    needs=("aiohttp",),
)
