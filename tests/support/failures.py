"""A function for `on_failure` that collects the errors of the tasks that have failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from handfast.types import TaskEnd


def errors_into(errors: list[Any]) -> Callable[[TaskEnd], None]:
    """Append the error of each failed task to `errors`."""
    return lambda end: errors.append(end.error)
