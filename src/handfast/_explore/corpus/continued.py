"""A search that begins where an earlier one stopped.

First the plain order and the schedules of the corpus. Then the schedules with one departure, from the
position at which the last search stopped; once all of them have been run, those that branch from the
corpus and new random ones, in turns. Then the usual search, with another seed. Nothing is left out
because it was run before: the code under test may have changed meanwhile. Only the order differs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TypeAlias

from handfast._explore.campaign import Campaign
from handfast._explore.corpus.store import Corpus, Entry
from handfast._explore.search.plan import Cancel, Options, Plan, Record
from handfast._explore.search.run import Program
from handfast._explore.search.strategies import Strategy
from handfast._explore.search.strategies.branching import Branching
from handfast._explore.search.strategies.sampling import Sampling
from handfast._explore.search.strategies.strategy import BATCH

# The schedules that are kept, and how many that branch from each are run before the usual search.
_KEPT, _FROM_EACH = 32, 16

_Key: TypeAlias = tuple[tuple[tuple[int, int], ...], tuple[Cancel, ...]]


class ContinuedCampaign(Campaign):
    """An exploration that begins with a corpus, and gives the corpus for the next one."""

    def __init__(self, program: Program, options: Options, corpus: Corpus) -> None:
        super().__init__(program, options)
        self._continued = Continued(self._strategy, options, corpus)
        self._strategy = self._continued

    def corpus(self) -> Corpus:
        """What to keep. A schedule that breaks the program comes first."""
        found = self.result().counterexample
        return self._continued.corpus([] if found is None else [found.plan])


class Continued:
    """The strategy: `inner` is the usual one."""

    def __init__(self, inner: Strategy, options: Options, corpus: Corpus) -> None:
        self._inner = inner
        self._before = corpus
        self._cancels = options.cancels
        self._limit = options.schedules
        # Of these schedules the record is known, so that the usual search need not run them again.
        self._memory: dict[_Key, Record] = {}
        self._ran: set[_Key] = set()
        self._branches: dict[_Key, list[Plan]] = {}
        # How runs went, as numbers, and the schedules that went as none before.
        self._seen: set[tuple[int, ...]] = set()
        self._new: list[Plan] = []
        self._plain: Record | None = None
        self._first = self._begin()
        self._beginning = True
        # What the usual search has given and not yet got back.
        self._out: deque[Plan] = deque()

    @property
    def bound(self) -> int | None:
        return self._inner.bound

    @property
    def complete(self) -> bool:
        return self._inner.complete

    def batch(self) -> list[Plan]:
        if self._beginning:
            plans = next(self._first, None)
            if plans:
                return plans
            self._beginning = False
        while plans := self._inner.batch():
            self._out = deque(plans)
            fresh = [plan for plan in plans if self._known(plan) is None]
            self._give_known()
            if fresh:
                return fresh
        return []

    def learn(self, record: Record) -> None:
        self._note(record)
        if self._beginning:
            if record.plan.tail == "plain":
                self._memory[_key(record.plan)] = record
            self._plain = self._plain or record
            return
        self._out.popleft()
        self._inner.learn(record)
        self._give_known()

    def corpus(self, found: list[Plan]) -> Corpus:
        """What to keep for the next search: nothing if this one has run all there is."""
        if self.complete and not found:
            return Corpus()
        kept: dict[_Key, Entry] = {_key(plan): self._entry(Entry(plan)) for plan in found}
        new = {_key(plan) for plan in self._new}
        # One that was not run this time is first in turn; one that shows nothing new any more goes.
        for entry in sorted(self._before.entries, key=lambda each: _key(each.plan) in self._ran):
            if _key(entry.plan) in new or _key(entry.plan) not in self._ran:
                kept.setdefault(_key(entry.plan), self._entry(entry))
        for plan in self._new:
            kept.setdefault(_key(plan), Entry(plan))
        kept.pop(((), ()), None)
        plain = self._entry(self._before.plain)
        return Corpus(self._before.searches + 1, plain, tuple(kept.values())[:_KEPT])

    # --- inside ------------------------------------------------------------------------------

    def _begin(self) -> Iterator[list[Plan]]:
        """The batches before the usual search."""
        yield [Plan(observe=True)]
        if not self._before.searches or self._plain is None:
            return
        entries = self._usable(self._plain)
        if entries:
            yield [replace(entry.plan, observe=True) for entry in entries]
        rest = self._branches_of(self._plain)[self._before.plain.position :]
        plans = rest or list(_interleaved(self._deeper(entries), self._random(self._plain)))
        for at in range(0, len(plans), BATCH):
            yield [replace(plan, observe=True) for plan in plans[at : at + BATCH]]

    def _usable(self, plain: Record) -> list[Entry]:
        """Schedules of the corpus that cancel only what may be cancelled; a part of the budget."""
        tasks = {segment.task for segment in plain.segments}
        entries = [
            entry
            for entry in self._before.entries
            if len(entry.plan.cancels) <= self._cancels
            and all(cancel.task in tasks for cancel in entry.plan.cancels)
        ]
        return entries if self._limit is None else entries[: max(1, self._limit // 4)]

    def _random(self, plain: Record) -> list[Plan]:
        samples = Sampling(("random", "pct", "pos"), self._before.searches, self._cancels)
        samples.learn(plain)
        return samples.batch()

    def _deeper(self, entries: list[Entry]) -> Iterator[Plan]:
        """Those that branch from the schedules of the corpus, in turns."""
        for entry in entries:
            record = self._memory.get(_key(entry.plan))
            if record is not None:
                branches = self._branches_of(record)
                yield from branches[entry.position : entry.position + _FROM_EACH]

    def _branches_of(self, record: Record) -> list[Plan]:
        key = _key(record.plan)
        if key not in self._branches:
            # The program may not have met all departures of a schedule that was kept.
            found = Branching(self._cancels).branches(replace(record, plan=record.settled), 0)
            self._branches[key] = [plan for _, plan in sorted(found, key=lambda each: each[0])]
        return self._branches[key]

    def _note(self, record: Record) -> None:
        """Keep the schedule if the run went as none before."""
        if record.plan.tail == "plain":
            self._ran.add(_key(record.plan))
        signs = (len(record.taken), record.steps, record.instants, record.cancelled)
        if signs not in self._seen:
            self._seen.add(signs)
            if record.verdict is None and len(self._new) < _KEPT:
                self._new.append(record.settled)

    def _entry(self, entry: Entry) -> Entry:
        """The entry with the position that this search has reached."""
        record = self._memory.get(_key(entry.plan))
        if record is None:
            return entry
        branches, position = self._branches_of(record), entry.position
        while position < len(branches) and _key(branches[position]) in self._ran:
            position += 1
        return replace(entry, position=position)

    def _known(self, plan: Plan) -> Record | None:
        return self._memory.get(_key(plan)) if plan.tail == "plain" and not plan.states else None

    def _give_known(self) -> None:
        while self._out and (known := self._known(self._out[0])) is not None:
            self._inner.learn(replace(known, plan=self._out.popleft()))


def _key(plan: Plan) -> _Key:
    return plan.choices, plan.cancels


def _interleaved(one: Iterable[Plan], other: Iterable[Plan]) -> Iterator[Plan]:
    pairs = zip_longest(one, other)
    return (plan for plan in chain.from_iterable(pairs) if plan is not None)
