"""Runs `check`, `explore` and `leaks` on one example, and returns what they say in sections.

`check` reads each version; `explore` searches each version for a schedule that breaks it; `leaks`
watches the reported and the fixed version with their real parts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from examples.cleanup import children, collect_garbage, end_new_children
from examples.example import AS_PROPOSED, AS_REPORTED, FIXED, VERSIONS, Example
from handfast import check, explore, leaks
from handfast._check.engine.discovery import shown
from handfast._check.output.text import text
from handfast._check.source import lines_in

__all__ = ["LABELS", "Section", "sections", "what_check_says", "what_explore_finds", "what_leaks"]

_WIDTH = 100
LABELS = {
    AS_REPORTED: "as reported",
    AS_PROPOSED: "with the report's fix",
    FIXED: "fixed",
}


@dataclass(frozen=True, slots=True)
class Section:
    """What one tool says about one version. `ok` means that it found nothing wrong."""

    title: str
    command: str
    text: str
    ok: bool


def sections(example: Example, width: int = _WIDTH) -> Iterator[Section]:
    """Run the tools one after another; each section is made when the caller asks for it."""
    for version in VERSIONS:
        yield what_check_says(example, version)
    for version in VERSIONS:
        yield what_explore_finds(example, version, width)
    for version in (AS_REPORTED, FIXED):
        yield what_leaks(example, version)


def what_check_says(example: Example, version: str) -> Section:
    """What `check` finds in the source."""
    path = shown(example.path(version))
    report = check.check([path])
    return Section(
        f"{LABELS[version]}: check",
        f"handfast check {path}",
        text(report, _lines_of).strip(),
        report.clean,
    )


def _lines_of(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return lines_in(file.read())


def what_explore_finds(example: Example, version: str, width: int = _WIDTH) -> Section:
    """The schedule that breaks the version, or how many schedules were tried."""
    title = f"{LABELS[version]}: explore"
    command = f"handfast explore {example.package}.explored:{version}"
    if example.options.get("cancel"):
        command += " --cancel"
    result = explore.explore(example.explored(version), **example.options)
    found = result.counterexample
    if found is None:
        return Section(title, command, str(result), True)
    if isinstance(found.error, ModuleNotFoundError):
        return Section(title, command, _not_shown(found.error.name), True)
    return Section(title, command, found.report(width=width), False)


def what_leaks(example: Example, version: str) -> Section:
    """Run the version with its real parts; the section lists what it leaks."""
    title = f"{LABELS[version]}: leaks, with real parts"
    command = f"python -m examples {example.name}"
    if example.missing:
        return Section(title, command, _not_shown(", ".join(example.missing)), True)
    with _asyncio_log_disabled(), collect_garbage():
        said, leaked = asyncio.run(_watched(example, version))
    return Section(title, command, "\n".join([said, *(leaked or ["No leaks."])]), not leaked)


def _not_shown(missing: str | None) -> str:
    return f"not shown: {missing} is not installed"


@contextmanager
def _asyncio_log_disabled() -> Iterator[None]:
    """Disable asyncio's log: the section already says what it would repeat."""
    logger = logging.getLogger("asyncio")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


async def _watched(example: Example, version: str) -> tuple[str, list[str]]:
    said = ""
    before = children()
    # Before the watch begins: what importing a library creates is not a leak of the program.
    program = example.real(version)
    try:
        async with leaks.no_leaks():
            said = await program()
    except leaks.LeakError as error:
        await end_new_children(before)
        return said, [str(each) for each in error.leaks]
    return said, []
