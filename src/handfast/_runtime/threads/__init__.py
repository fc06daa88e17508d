"""Calls that other threads submit to a loop."""
