"""Child processes: start, output, signals, teardown."""
