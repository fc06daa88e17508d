"""The tasks of a scope: how they are created, counted, and what happens when they end."""
