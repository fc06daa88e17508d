"""The report that makes a test fail with a text of ours."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest._code.code import (
    ReprEntryNative,
    ReprExceptionInfo,
    ReprFileLocation,
    ReprTraceback,
)


def failed_report(
    item: pytest.Item, text: str, properties: Iterable[tuple[str, object]] = ()
) -> pytest.TestReport:
    """A report that shows `text`, and its first line in the short summary.

    Not a plain string: on a CI system pytest would print all of it again in the summary. xdist
    sends this form from its workers as it is.
    """
    first = text.partition("\n")[0]
    path, line, _ = item.location
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed",
        longrepr=ReprExceptionInfo(
            reprtraceback=ReprTraceback(
                [ReprEntryNative([f"{text}\n"])], extraline=None, style="native"
            ),
            reprcrash=ReprFileLocation(path, (line or 0) + 1, first),
        ),
        when="call",
        user_properties=list(properties),
    )
