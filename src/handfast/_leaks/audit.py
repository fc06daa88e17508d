"""An audit: list what is alive, wait for what is about to end, judge, report, cancel.

`no_leaks` and the pytest plugin use it. Each object is reported once.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, current_task
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence

from handfast._asyncio_internals import running_loop
from handfast._census import DEFAULT, LiveObject, Snapshot, take
from handfast._census.kinds import KINDS, descriptors
from handfast._leaks import judge
from handfast._leaks.cancel_leaked import cancel_leaked
from handfast._leaks.leak import Leak
from handfast._leaks.settle import Steps, run_steps, run_steps_here, settle

GRACE = 0.25
"""Seconds that objects which are about to end get to do so."""

Finding = tuple[object, Leak]
"""The owner, and the leak."""


def _no_name(owner: object) -> str:
    return ""


class Audit:
    """Finds what owners have leaked. `name_of` names an owner in reports; `judged` leaves out what
    belongs to another one that has not ended."""

    def __init__(
        self,
        name_of: Callable[[object], str] = _no_name,
        *,
        cancel: bool = True,
        judged: Callable[[list[LiveObject]], list[LiveObject]] = list,
    ) -> None:
        self._name_of = name_of
        self._cancel = cancel
        self._judged = judged
        # What has no recorded creation, and was there at the last audit.
        self._known: frozenset[Hashable] = frozenset()
        self.not_checked: Counter[str] = Counter()
        """What could not be checked, and how often."""

    def remember(self, checks: Collection[str] = DEFAULT) -> None:
        """Do not report what is alive now and has no recorded creation."""
        if "descriptors" in checks:
            descriptors.record_files()
        self._known |= judge.keys_without_owner(take(checks))

    def leaked_by(
        self, owners: Collection[object], checks: Collection[str] = DEFAULT, grace: float = GRACE
    ) -> list[Finding]:
        """What `owners`, which have ended, have leaked. No loop runs in this thread."""
        return run_steps(self._leaked_by(owners, checks, grace))

    async def leaked_here_by(
        self, owners: Collection[object], checks: Collection[str] = DEFAULT, grace: float = GRACE
    ) -> list[Finding]:
        """The same, on the loop that runs in this thread."""
        return await run_steps_here(self._leaked_by(owners, checks, grace))

    def leaked_on(
        self, loop: AbstractEventLoop, checks: Collection[str] = DEFAULT, grace: float = GRACE
    ) -> list[Finding]:
        """What any owner has leaked on a loop that is about to close.

        Its tasks are cancelled in any case: the close would do that, and might hang.
        """
        return run_steps(self._leaked_on(loop, checks, grace))

    def _leaked_by(
        self, owners: Collection[object], checks: Collection[str], grace: float
    ) -> Steps[list[Finding]]:
        me = current_task() if running_loop() is not None else None
        slow = [check for check in checks if KINDS[check].slow]
        quick = [check for check in checks if check not in slow]
        seen = Snapshot(())

        def leaked_in(snapshot: Snapshot) -> list[LiveObject]:
            leaked = judge.leaked_by(snapshot, owners, self._known)
            return [live for live in leaked if me is None or live.target is not me]

        def look() -> list[LiveObject]:
            nonlocal seen
            is_first, seen = not seen.objects, take(quick)
            leaked = leaked_in(seen)
            # At first, so that there is nothing to wait for; the search is too slow for each look.
            return self._judged(leaked) if is_first else leaked

        leaked = yield from settle(look, grace)
        if slow:
            more = take(slow)
            seen += more
            leaked += leaked_in(more)
        leaked = self._judged(leaked)
        leaks = self._report(leaked)
        stuck = (yield from cancel_leaked(leaked)) if self._cancel else set()
        self.not_checked.update(seen.not_checked)
        self._known = judge.keys_without_owner(seen)
        return _findings(leaked, leaks, stuck)

    def _leaked_on(
        self, loop: AbstractEventLoop, checks: Collection[str], grace: float
    ) -> Steps[list[Finding]]:
        listed = [name for name in judge.CHECKED_ON_CLOSE if name in checks or name == "tasks"]
        seen = Snapshot(())

        def look() -> list[LiveObject]:
            nonlocal seen
            seen = take(listed, loop=loop)
            return judge.leaked_on_loop(seen)

        leaked = yield from settle(look, grace)
        leaks = self._report(leaked)
        # Also those that were reported before: in `report` mode they ran until here.
        stuck = yield from cancel_leaked(judge.kept_by_no_library(seen.objects))
        self.not_checked.update(seen.not_checked)
        found = _findings(leaked, leaks, stuck)
        return [(owner, leak) for owner, leak in found if leak.check in checks]

    def _report(self, leaked: Sequence[LiveObject]) -> list[Leak]:
        """The leaks as they are now, before anything is cancelled."""
        for live in leaked:
            if live.creation is not None:
                live.creation.reported = True
        return [
            Leak.of(live, self._name_of(live.owner) if live.owner is not None else "")
            for live in leaked
        ]


def _findings(
    leaked: Sequence[LiveObject], leaks: Sequence[Leak], stuck: Collection[int]
) -> list[Finding]:
    return [
        (
            live.owner,
            leak.replace(code=judge.SWALLOWS_CANCELLATION)
            if id(live.task_to_cancel) in stuck
            else leak,
        )
        for live, leak in zip(leaked, leaks, strict=True)
    ]
