"""Report 4: phases of an agent over the stream of an SDK that yields inside a task group."""

from examples.example import Claim, Example

__all__ = ["EXAMPLE"]

_EXPLORE = "handfast explore examples.phases.explored:"
_STRESS = "handfast stress examples.phases.real:"

EXAMPLE = Example(
    name="phases",
    number=4,
    title="A stream that yields inside a task group",
    story=(
        "An orchestrator runs phases. Each reads the messages of an SDK, which come from a child "
        "process, searches if the agent requests it, and ends at the first result. Errors whose "
        "text names a task group are treated as noise and turned into a success."
    ),
    claims=(
        Claim(
            "The errors are noise of a race in the clean-up of task groups.",
            "There is no race: a task group joins its children. The group contains what failed inside, "
            "here the CLI; the wrapper turns it into a success.",
            f"{_EXPLORE}as_reported",
        ),
        Claim(
            "`TaskGroup` cancellation runs clean-up in a different task.",
            "The stream yields inside the group. A reader that stops early leaves the group open, and "
            "the garbage collector closes it later, in another task.",
            "handfast check examples/phases/sdk.py",
        ),
        Claim(
            "Shield the clean-up: `await asyncio.shield(context.cleanup())`.",
            "`shield` starts a task, so the group is again closed in another task. And a cancellation "
            "meanwhile ends the wait, while the child keeps running.",
            f"{_EXPLORE}as_proposed --cancel",
        ),
        Claim(
            "`ResourceTracker.track_resource` tracks a resource while it is in use.",
            "It is a bare async generator: `async with` raises a TypeError.",
            f"{_EXPLORE}tracker_as_written",
        ),
        Claim(
            "`verify_cleanup_completion` confirms that everything was cleaned up.",
            "It calls `get_active_resources`, which the tracker does not have; and a set of names does "
            "not show what is alive. The owner that has joined the resources knows.",
            f"{_EXPLORE}verification_as_written",
        ),
        Claim(
            "`analyze_taskgroup_error` separates clean-up errors from operational ones.",
            "It looks at one level, at types and texts, so an error inside two groups counts as "
            "clean-up. The phase of an error is known only where it is raised.",
            f"{_EXPLORE}analysis_as_written",
        ),
        Claim(
            "HTTP sessions of a search leak when a task group cancels them.",
            "They do not: `async with` closes them in the task that opened them.",
            f"{_STRESS}search_as_reported -n 200",
        ),
    ),
    options={"schedules": 300, "cancel": True},
    needs=("aiohttp",),
)
