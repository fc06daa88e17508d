"""Whole programs: `run`, signals, `BackgroundLoop`, the shutdown of a loop."""
