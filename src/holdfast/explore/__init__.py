"""Run a program under the schedules nobody tried, and find the one that breaks it.

`explore` is the way in. The room, from the loop to what is shown:

    loop, stepping, timers, hindsight, world       the explored loop: a handle a step, and its choices
    twins/                                         the outside: network, child processes, threads
    real, stock                                    the loops with a real selector
    refusals, clocks, steady, python_bugs          what is refused, held still, or excused
    roll, ownership                                the tasks of a run, and whose they are
    plan, deciders/, run, segments                 one run: what to do, who answers, what was seen
    strategies/, states/                           which runs, and which of them cannot differ
    verdicts                                       what a run has shown
    explorer, workers, cluster, shrink, coverage   many runs, and the smallest that fails
    token, results                                 what is given back, and replayed
    trace, places, story                           a run told in full, as plain data
    rows, folding, timeline, page/                 what it looks like
    victims, latency                               what a program may say to the explorer
"""

from __future__ import annotations

from holdfast.explore.coverage import Coverage
from holdfast.explore.explorer import Campaign, Progress, explore
from holdfast.explore.latency import latency
from holdfast.explore.refusals import Uncontrolled
from holdfast.explore.results import Counterexample, Divergence, Exploration, replay
from holdfast.explore.token import BadToken
from holdfast.explore.twins.children import (
    Closes,
    Dies,
    Errs,
    Exits,
    Fails,
    Forks,
    Hears,
    HearsAll,
    Ignores,
    On,
    Says,
    Waits,
    child,
)
from holdfast.explore.verdicts import Verdict
from holdfast.explore.victims import Outcome, Victim, victim
from holdfast.explore.workers import WorkersNeedImport

__all__ = [
    "BadToken",
    "Campaign",
    "Closes",
    "Counterexample",
    "Coverage",
    "Dies",
    "Divergence",
    "Errs",
    "Exits",
    "Exploration",
    "Fails",
    "Forks",
    "Hears",
    "HearsAll",
    "Ignores",
    "On",
    "Outcome",
    "Progress",
    "Says",
    "Uncontrolled",
    "Verdict",
    "Victim",
    "Waits",
    "WorkersNeedImport",
    "child",
    "explore",
    "latency",
    "replay",
    "victim",
]
