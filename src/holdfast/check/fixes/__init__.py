"""What would mend a finding, where an edit can say it.

    inserting   where whole lines can be put into a file
    holding     the set that holds tasks: one that is there, or a new one
    keeping     HF101: a dropped task is kept until it is done
    joining     HF103, HF303: a cancelled task is waited for

These change what the program does, so they are suggestions: applied only with `--unsafe-fixes`. Where
no edit is surely right, there is none.
"""

from __future__ import annotations

from holdfast.check.fixes.joining import joined_after
from holdfast.check.fixes.keeping import kept_until_done

__all__ = ["joined_after", "kept_until_done"]
