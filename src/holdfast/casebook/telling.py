"""A case told chapter by chapter, as it happens: nothing here is written down beforehand.

What `check` says of each version, the schedule that breaks the first two, what they leave behind with
their real parts, and the right one surviving both. How it is framed is the business of who shows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast import check, explore, leaks
from holdfast.casebook.case import AS_IT_SHOULD_BE, AS_PROPOSED, AS_REPORTED, VERSIONS, Case
from holdfast.casebook.putting_away import children, children_ended, garbage_collected
from holdfast.check.files import shown
from holdfast.check.output.text import text
from holdfast.check.source import lines_in

__all__ = ["Chapter", "tell", "what_check_says", "what_explore_finds", "what_is_left"]

_WIDTH = 100
NAMES = {
    AS_REPORTED: "as reported",
    AS_PROPOSED: "as the report would fix it",
    AS_IT_SHOULD_BE: "as it should be",
}


@dataclass(frozen=True, slots=True)
class Chapter:
    """One thing that was seen. `went_well` is what one would wish for of a program."""

    title: str
    command: str
    text: str
    went_well: bool
    page: str = ""
    """The timeline as one self-contained page of HTML, where there is one."""


def tell(case: Case, width: int = _WIDTH) -> Iterator[Chapter]:
    """The chapters, each when it has been seen."""
    for version in VERSIONS:
        yield what_check_says(case, version)
    for version in VERSIONS:
        yield what_explore_finds(case, version, width)
    for version in (AS_REPORTED, AS_IT_SHOULD_BE):
        yield what_is_left(case, version)


def what_check_says(case: Case, version: str) -> Chapter:
    """What is found by reading the file."""
    path = shown(case.path(version))
    report = check.check([path])
    return Chapter(
        f"what check says of the program {NAMES[version]}",
        f"holdfast check {path}",
        text(report, _lines_of).strip(),
        report.clean,
    )


def _lines_of(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return lines_in(file.read())


def what_explore_finds(case: Case, version: str, width: int = _WIDTH) -> Chapter:
    """The schedule that breaks it, or how many were tried."""
    command = f"holdfast explore {case.package}.schedules:{version}"
    if case.options.get("cancel"):
        command += " --cancel"
    result = explore.explore(case.scheduled(version), **case.options)
    found = result.counterexample
    if found is not None and isinstance(found.error, ModuleNotFoundError):
        return Chapter(f"the program {NAMES[version]}", command, _not_shown(found.error.name), True)
    return Chapter(
        f"the schedule that breaks it {NAMES[version]}"
        if found
        else f"the program {NAMES[version]}, under every schedule that was tried",
        command,
        found.report(width=width) if found else str(result),
        found is None,
        found.to_html() if found else "",
    )


def what_is_left(case: Case, version: str) -> Chapter:
    """The program with its real parts, and what it leaves behind."""
    title = f"{NAMES[version]}, with its real parts"
    command = f"holdfast tour {case.name}"
    if case.missing:
        return Chapter(title, command, _not_shown(", ".join(case.missing)), True)
    with _unlogged(), garbage_collected():
        said, left = asyncio.run(_watched(case, version))
    return Chapter(title, command, "\n".join([said, *(left or ["Nothing is left."])]), not left)


def _not_shown(lacking: str | None) -> str:
    return f"not shown: {lacking} is not installed"


@contextmanager
def _unlogged() -> Iterator[None]:
    """What asyncio would log of a program that goes wrong stands in the chapter."""
    logger = logging.getLogger("asyncio")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


async def _watched(case: Case, version: str) -> tuple[str, list[str]]:
    said = ""
    before = children()
    program = case.real(version)  # what is made when a library is imported is not the program's
    try:
        async with leaks.watch():
            said = await program()
    except leaks.LeakError as error:
        await children_ended(before)
        return said, [str(each) for each in error.leaks]
    return said, []
