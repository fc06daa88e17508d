"""Find lifetime bugs by reading the code. Nothing of it is imported or run.

    files       which files: paths, folders, what git ignores
    settings    what pyproject.toml and the command line ask for
    source      one file, read
    facts       what one file tells about the others
    model/      facts about it
    rules/      one file for each rule: facts to findings
    finding     what a rule has found
    fixes/      what would mend it
    show        the line of pytest that shows it
    noqa        what a comment takes back
    engine      all of that, one after the other: a report
    jobs        the same on several processes
    cache       what was found last time
    baseline    what is known
    fixing      applies what mends
    output/     how it is shown

>>> from holdfast.check import check
>>> check(["no_such_folder"])
Traceback (most recent call last):
holdfast.check.files.NoSuchPath: there is no file or folder 'no_such_folder'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.check.engine import check
    from holdfast.check.finding import Finding
    from holdfast.check.report import Report

__all__ = ["Finding", "Report", "check"]

_HOMES = {"check": "engine", "Finding": "finding", "Report": "report"}


def __getattr__(name: str) -> Any:
    """The public names, loaded when they are asked for: a warm run needs few of them."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"holdfast.check.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'holdfast.check' has no attribute {name!r}")
