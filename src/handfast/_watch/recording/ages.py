"""How old tasks are: buckets whose bounds are powers of two."""

from __future__ import annotations

from math import frexp

from handfast._watch.snapshot import AGE_BUCKETS


def bucket_of(age: float) -> int:
    """The bucket of an age in seconds; see `AGE_BUCKETS`.

    >>> [bucket_of(age) for age in (0.0, 0.015, 2**-6, 0.5, 1.0, 3600.0, 1e9)]
    [0, 0, 1, 6, 7, 18, 23]
    """
    # frexp gives e with 2**(e - 1) <= age < 2**e.
    return 0 if age <= 0 else min(max(frexp(age)[1] + 6, 0), AGE_BUCKETS - 1)
