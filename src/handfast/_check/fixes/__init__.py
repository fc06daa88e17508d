"""Fixes for findings.

    insertion           inserting whole lines, and names that are not used yet
    keep_task           HF101: keep a task in a set until it is done
    join_after_cancel   HF103, HF303: wait for a cancelled task

They change what the program does, so they are applied only with `--unsafe-fixes`. There is no fix
where no edit is certain to be right.
"""

from __future__ import annotations

from handfast._check.fixes.join_after_cancel import joined_after
from handfast._check.fixes.keep_task import kept_until_done

__all__ = ["joined_after", "kept_until_done"]
