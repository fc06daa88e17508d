"""Programs that create their event loops themselves: a test with its fixtures, run by pytest.

`program` is such a program, `loops` gives it explored loops in place of asyncio's, `run` runs it
once under a plan, `verdict` judges the run against the plain one, `accounting` knows who holds which
lock, `patches` replaces attributes for the length of a run, `stock` repeats a finding on asyncio's own
loop, `isolation` calls it in a fork, and `source_files` tells tests from what they test.
"""
