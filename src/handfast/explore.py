"""Run a program under many schedules and find the one that breaks it.

>>> import asyncio
>>> from handfast.explore import explore
>>> async def program() -> None:
...     await asyncio.sleep(1)
>>> print(explore(program).summary)
nothing here can be reordered: 1 schedule
"""

from __future__ import annotations

from handfast._explore.campaign import explore
from handfast._explore.latency import latency
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.oracles.history import (
    History,
    InconsistentHistory,
    NotChecked,
    linearizable,
    serializable,
)
from handfast._explore.oracles.ordering import WouldBlock
from handfast._explore.replay import Divergence, replay
from handfast._explore.result import Counterexample, Exploration
from handfast._explore.token import BadToken
from handfast._explore.verdict.verdict import Verdict
from handfast._explore.victim import victim
from handfast._public_names import publish

__all__ = [
    "BadToken",
    "Counterexample",
    "Divergence",
    "Exploration",
    "History",
    "InconsistentHistory",
    "NotChecked",
    "Uncontrolled",
    "Verdict",
    "WouldBlock",
    "explore",
    "latency",
    "linearizable",
    "replay",
    "serializable",
    "victim",
]

publish(__name__, [globals()[name] for name in __all__])
