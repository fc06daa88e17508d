"""Which lines create tasks that stay: a leak that load does not explain.

- `detector`: `GrowthDetector`, what the agent calls
- `series`: what is kept of one place of creation
- `evidence`: the conditions that a leak must meet, and no load does
- `space_saving`: the places to keep if there are too many
"""

from handfast._watch.growth.detector import GrowthDetector, PlaceCount

__all__ = ["GrowthDetector", "PlaceCount"]
