"""Decide which live objects are leaks, and report them: the engine behind `handfast.leaks`."""
