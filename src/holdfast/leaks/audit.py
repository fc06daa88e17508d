"""An audit: look, let it settle, judge, end what can be ended, and say what was left behind.

`watching` and the pytest plugin are the two that ask for one. Each thing is told once.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, current_task
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence

from holdfast.census import DEFAULT, Census, Thing, descriptors, take
from holdfast.census.tasks import TaskAlive
from holdfast.leaks import ending, judging, settling
from holdfast.leaks.finding import Leak

__all__ = ["GRACE", "Audit"]

GRACE = 0.25
"""Seconds that what is on its way out gets to end by itself."""

Finding = tuple[object, Leak]
"""Whose it is, and what."""


def _nameless(owner: object) -> str:
    return ""


class Audit:
    """Looks for what owners have left behind. `name_of` puts an owner in words."""

    def __init__(self, name_of: Callable[[object], str] = _nameless, *, cancel: bool = True):
        self._name_of = name_of
        self._cancel = cancel
        # What nobody saw being made, and was there when it was last looked at.
        self._known: frozenset[Hashable] = frozenset()
        self.not_checked: Counter[str] = Counter()
        """What could not be looked at, and how often."""

    def remember(self, checks: Collection[str] = DEFAULT) -> None:
        """What is alive now is nobody's leak."""
        if "descriptors" in checks:
            descriptors.note_files()
        self._known |= judging.unowned(take(checks))

    def left_by(
        self, owners: Collection[object], checks: Collection[str] = DEFAULT, grace: float = GRACE
    ) -> list[Finding]:
        """What `owners`, who have ended, have left behind. No loop runs in this thread."""
        look = _Look(
            lambda: take(_quick(checks)), lambda seen: judging.left_by(seen, owners, self._known)
        )
        left = settling.settle(look, grace)
        left += look.once(_slow(checks))
        findings = self._told(left)
        stuck = ending.end(left) if self._cancel and left else set()
        self._conclude(look.census)
        return _named_for_what_they_do(left, findings, stuck)

    async def left_here_by(
        self, owners: Collection[object], checks: Collection[str] = DEFAULT, grace: float = GRACE
    ) -> list[Finding]:
        """The same, on the loop that runs in this thread."""
        me = current_task()
        look = _Look(
            lambda: take(_quick(checks)),
            lambda seen: [
                thing
                for thing in judging.left_by(seen, owners, self._known)
                if not (isinstance(thing, TaskAlive) and thing.task is me)
            ],
        )
        left = await settling.settle_here(look, grace)
        left += look.once(_slow(checks))
        findings = self._told(left)
        stuck = await ending.end_here(left) if self._cancel and left else set()
        self._conclude(look.census)
        return _named_for_what_they_do(left, findings, stuck)

    def left_on(
        self, loop: AbstractEventLoop, checks: Collection[str] = DEFAULT, grace: float = GRACE
    ) -> list[Finding]:
        """What is left on a loop that is about to close, whoever owns it.

        Its tasks are ended in any case: the close would do it, and might never come back.
        """
        here = [check for check in judging.SEEN_ON_A_LOOP if check in checks or check == "tasks"]
        look = _Look(lambda: take(here, loop=loop), judging.left_on_loop)
        left = settling.settle(look, grace)
        self.not_checked.update(look.census.not_checked)
        findings = self._told(left)
        # Also those that were told of before: in `report` mode they go on until here.
        stuck = ending.end(look.census.things)
        named = _named_for_what_they_do(left, findings, stuck)
        return [(owner, leak) for owner, leak in named if leak.check in checks]

    def _told(self, left: Sequence[Thing]) -> list[Finding]:
        """The findings, in words that are true now: before anything is ended."""
        for thing in left:
            if thing.birth is not None:
                thing.birth.told = True
        return [(thing.owner, Leak.of(thing, self._words_for(thing.owner))) for thing in left]

    def _words_for(self, owner: object) -> str:
        return self._name_of(owner) if owner is not None else ""

    def _conclude(self, census: Census) -> None:
        self.not_checked.update(census.not_checked)
        self._known = judging.unowned(census)


class _Look:
    """Takes a census and judges it; keeps the last one."""

    def __init__(self, look: Callable[[], Census], judge: Callable[[Census], list[Thing]]) -> None:
        self._look = look
        self._judge = judge
        self.census = Census(())

    def __call__(self) -> list[Thing]:
        self.census = self._look()
        return self._judge(self.census)

    def once(self, checks: Sequence[str]) -> list[Thing]:
        """What other checks see, now that everything has settled."""
        if not checks:
            return []
        more = take(checks)
        self.census = self.census + more
        return self._judge(more)


# What walks the whole heap is looked at once, and not at each pause.
_SLOW = ("retained", "memory")


def _quick(checks: Collection[str]) -> list[str]:
    return [check for check in checks if check not in _SLOW]


def _slow(checks: Collection[str]) -> list[str]:
    return [check for check in checks if check in _SLOW]


def _named_for_what_they_do(
    left: Sequence[Thing], findings: Sequence[Finding], stuck: Collection[int]
) -> list[Finding]:
    """A task that no cancel has ended is one that swallows it."""
    for thing, (_, leak) in zip(left, findings, strict=True):
        if isinstance(thing, TaskAlive) and id(thing.listed) in stuck:
            leak.code = "HF501"
    return list(findings)
