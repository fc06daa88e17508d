"""The five systems of the reports, runnable: as reported, as the report would fix it, as it should be.

case        what a case is made of
telling     a case told chapter by chapter, as it happens
putting_away   what a program that goes wrong leaves behind
pages       the same as pages of HTML

captures/   seed 000: a chat bot captures the output of commands, one task for each key
child/      seed 001: a child process that talks, and the task that drains its stderr
reactive/   seed 002: a reactive pipeline that runs graphs on an event loop
phases/     seed 003: agent phases over a stream, under a task group
prefetch/   seed 004: background prefetch in a sync program
"""

from __future__ import annotations

from importlib import import_module

from holdfast.casebook.case import Case, Claim

__all__ = ["NAMES", "Case", "Claim", "NoSuchCase", "cases", "find"]

NAMES = ("captures", "child", "reactive", "phases", "prefetch")


class NoSuchCase(ValueError):
    """There is no case of this name."""


def find(name: str) -> Case:
    """The case of this name; the number of its seed will do.

    >>> find("000").name
    'captures'
    """
    for case in cases():
        if name in (case.name, case.seed):
            return case
    raise NoSuchCase(f"there is no case {name!r}; there are {', '.join(NAMES)}")


def cases() -> tuple[Case, ...]:
    """All of them, in the order of the seeds."""
    found: list[Case] = [import_module(f"{__name__}.{name}").CASE for name in NAMES]
    return tuple(found)
