"""What to check and what to report, from `pyproject.toml` and the command line."""
