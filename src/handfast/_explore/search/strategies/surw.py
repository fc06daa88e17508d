"""SURW: orders of the events of a selection, each as likely as any other (see `deciders.uniform`)."""

from __future__ import annotations

from handfast._explore.search.strategies.sampling import sampling
from handfast._explore.search.strategies.strategy import Factory

STRATEGIES: dict[str, Factory] = {"surw": sampling("surw")}
