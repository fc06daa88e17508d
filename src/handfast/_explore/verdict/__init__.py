"""The verdict of a run, and what a program left when it ended."""
