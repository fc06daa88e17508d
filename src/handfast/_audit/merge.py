"""Merges what the tools have seen into issues, and ranks these.

Two observations are one issue if the line of one is among the lines of the other: usually the line
that creates the task. What more tools have seen comes first, then the surer evidence, then the
greater harm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from handfast._audit.observation import Evidence, Observation, Place, Tool
from handfast._audit.project import is_test_file
from handfast.catalogue import kind

# By the longest prefix of the code: how bad, and in one word what is lost.
_HARM: dict[str, tuple[int, str]] = {
    "HF": (1, "leak"),
    "HF1": (1, "leak"),
    "HF2": (3, "lost data"),
    "HF3": (3, "lost data"),
    "HF303": (1, "leak"),
    "HF4": (3, "lost data"),
    "HF403": (0, "noise"),
    "HF42": (2, "hang"),
    "HF43": (2, "hang"),
    "HF5": (2, "hang"),
    "HF511": (3, "lost data"),
    "HF532": (3, "lost data"),
    "HF6": (3, "lost data"),
    "HF611": (0, "noise"),
    "HF7": (1, "leak"),
    "HF721": (0, "noise"),
}


@dataclass(frozen=True)
class Issue:
    """One bug, with everything that was seen of it; the surest first."""

    seen: tuple[Observation, ...]

    @property
    def first(self) -> Observation:
        return self.seen[0]

    @property
    def code(self) -> str:
        return self.first.code

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.code for each in self.seen))

    @property
    def also(self) -> tuple[Observation, ...]:
        """What was seen beside the first, once for each code."""
        by_code = {each.code: each for each in reversed(self.seen) if each.code != self.code}
        return tuple(reversed(by_code.values()))

    @property
    def name(self) -> str:
        return kind(self.code).name

    @property
    def place(self) -> Place | None:
        return next((each.place for each in self.seen if each.place is not None), None)

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(dict.fromkeys(each.tool for each in self.seen))

    @property
    def evidence(self) -> Evidence:
        return max(each.evidence for each in self.seen)

    @property
    def harm(self) -> str:
        return self._harm[1]

    @property
    def _harm(self) -> tuple[int, str]:
        places = [each.place for each in self.seen]
        if self.tools == ("leaks",) and all(_is_in_test(each) for each in places):
            return 0, "in the tests only"
        return max(map(_harm_of, self.codes))

    @property
    def fix(self) -> str:
        """What to do: the fix of the rule, or the advice for the kind."""
        return self.first.fix or advice(self.code)

    def rank(self) -> tuple[int, int, int, str, str]:
        """For sorting: the most important has the least."""
        tools = {each.tool.partition(" ")[0] for each in self.seen}
        seen_by = -min(len(tools), 2)
        return (seen_by, -self.evidence, -self._harm[0], str(self.place), self.code)


def merge(observations: Iterable[Observation]) -> list[Issue]:
    """The issues, the most important first."""
    groups: list[list[Observation]] = []
    for each in observations:
        same = [group for group in groups if any(_is_same(each, other) for other in group)]
        merged = [each, *(other for group in same for other in group)]
        groups = [group for group in groups if group not in same]
        groups.append(merged)
    issues = [
        Issue(tuple(sorted(group, key=lambda each: (-each.evidence, each.code, each.message))))
        for group in groups
    ]
    return sorted(issues, key=Issue.rank)


def _is_same(one: Observation, other: Observation) -> bool:
    return one.place in other.places or other.place in one.places


def _is_in_test(place: Place | None) -> bool:
    return place is not None and is_test_file(Path(place.path))


def _harm_of(code: str) -> tuple[int, str]:
    return _HARM[max((each for each in _HARM if code.startswith(each)), key=len)]


# --- what to do ----------------------------------------------------------------------------------

_ADVICE = {
    "HF": "see the right version in the catalogue",
    "HF1": "keep the task, and in the method that closes its owner cancel it and await it",
    "HF103": "await the tasks after cancelling them, for example with asyncio.wait",
    "HF114": "run them in a TaskGroup, which cancels and awaits the others",
    "HF115": "cancel and await the task in a finally, or run it in a TaskGroup",
    "HF122": "await the coroutine, or start a task with it and keep the task",
    "HF131": "remove each task when it is done, for example in a done callback",
    "HF141": "find what would wake it, and end the wait when that goes away",
    "HF2": "remove the entry only if it is still this task, and await the old task before the new one",
    "HF205": "cancel and await the old task before storing the new one",
    "HF211": "store the running task under the key, and let later callers await it",
    "HF3": "wait for the tasks first, then close what they use",
    "HF304": "close the object from another task, or leave the current task out",
    "HF311": "check again after the await, or hold a lock over both",
    "HF312": "take the object into a local variable before the first await",
    "HF321": "wait for the exit and for the end of the output, then cancel the reader",
    "HF322": "call task_done in a finally",
    "HF331": "let the first call do the clean-up, and the others wait for it",
    "HF4": "do not rely on this order: hold a lock over the awaits, or check again after them",
    "HF40": "use loop.call_soon_threadsafe or asyncio.run_coroutine_threadsafe",
    "HF41": "iterate over a copy, and look again for tasks that were added meanwhile",
    "HF421": "create it inside the loop that uses it, one for each loop",
    "HF422": "end the users of the loop before the loop, and bound the wait for a result",
    "HF423": "await the coroutine there; block only in another thread",
    "HF424": "cancel and await the loop's tasks, stop the loop, join its thread, close the loop",
    "HF425": "release the lock before the await, or use asyncio.Lock",
    "HF43": "find the two waits in the timeline, and give one of them a way to end",
    "HF443": "fix the test first: no schedule can be judged before it passes",
    "HF5": "let CancelledError pass, and put clean-up into finally",
    "HF503": "wait with asyncio.wait, and let the function's own CancelledError pass",
    "HF504": "wait with asyncio.wait([task]), which does not raise the CancelledError of the task",
    "HF512": "create the task first, keep it, and await it before the end",
    "HF521": "wait with asyncio.wait and its timeout, then report the tasks that have not ended",
    "HF522": "let each waiter await asyncio.shield(task), and one owner cancel it",
    "HF53": "put the acquisition and the work into one `async with`, or begin `try` directly after it",
    "HF532": "take the value back, or pass it on, when the wait is cancelled",
    "HF533": "look at future.done() before setting the result",
    "HF541": "yield outside of it, or host the generator in a task, as `handfast.stream` does",
    "HF542": "enter and leave it in one task, as `scope.hold` does",
    "HF6": "read each result, and let the error reach a caller",
    "HF602": "look at task.done() before the cancel, and read the error of a task that has failed",
    "HF604": "catch the error inside the callback, or do the work in a task",
    "HF611": "look at the type of the exception, not at its text",
    "HF612": "catch only what the value stands for, and let the rest reach a caller",
    "HF631": "attach the error of the clean-up to the first one, and raise that",
    "HF641": "catch the error of one message inside the loop over all of them",
    "HF7": "close it in a finally, or with `async with`",
    "HF70": "terminate the child in a finally, and wait until it has ended",
    "HF704": "read the pipe while the child runs, or send its output to a file or DEVNULL",
    "HF71": "end the thread or the executor when its owner is closed, and wait until it has ended",
    "HF72": "cancel the timer when its owner is closed",
    "HF73": "close the generator, with `contextlib.aclosing` or `handfast.stream`",
    "HF76": "remove each entry on every path, also after an error or a cancellation",
}


def advice(code: str) -> str:
    """What to do about a kind of bug, in one line."""
    return _ADVICE[max((each for each in _ADVICE if code.startswith(each)), key=len)]
