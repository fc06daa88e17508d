"""How fast, how small, how steady: the measurements that stand beside every number in the docs.

compare      python -m benchmarks.compare WORK: handfast and other libraries: ratios, targets
soak         python -m benchmarks.soak: ten million tasks through one scope, no growth
comparisons/ one file for each WORK, and the table that lists them
regressions/ the same work for ASV: us against ourselves, commit by commit
"""
