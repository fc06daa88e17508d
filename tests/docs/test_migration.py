"""The migration guide names every public name of 0.1, and only names that exist now.

`NAMES` and `CHANGED` are the public names of 0.1 and what changed below them, read from that version.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "migration.md").read_text()
NAMES = {
    "": "BackgroundLoop CleanupErrors CloseReport Ending ExitStatus Failure LoopStopped Origin Process "
    "ProcessGone ProcessStartError Restart RestartLimit Scope ScopeClosed SlotBusy SlotCancelled SlotStuck "
    "Slots Straggler StragglersLeft Stream StreamBroken UnsupportedPlatform WrongLoop run shielded split "
    "stream",
    "check.": "Finding Report check",
    "catalogue.": "FAMILIES KINDS BugKind UnknownCode kind",
    "census.": "register",
    "explore.": "BadToken Campaign Closes Counterexample Coverage Dies Divergence Errs Exits Exploration "
    "Fails Forks Hears HearsAll Ignores On Outcome Progress Says Uncontrolled Verdict Victim Waits "
    "WorkersNeedImport child explore latency replay victim",
    "leaks.": "Leak LeakError StressReport Watch stress watch",
    "bridges.reactivex.": "MapAsync Outcome Overflow WhenFull map_async",
    "bridges.langgraph.": "Graph GraphRunner",
    "bridges.anyio.": "task_group",
    "bridges.aiohttp.": "app_scope request_scope setup",
    "bridges.rx_langgraph.": "RxLangGraphBridge",
}
CHANGED = """
    Scope(deadline=) Scope.close(deadline=) Scope.hold(deadline=) Scope.spawn(uses=) Scope.serve
    Scope.release(value) Slots(deadline=) Slots.keep Slots.queue Slots.reject Slots.replace Slots.cancel
    Slots.close run(deadline=) shielded(deadline=) stream(deadline=) check.Report.stdin
    catalogue.BugKind.fine leaks.stress(deadline=) leaks.StressReport.text(braille=)
    bridges.reactivex.MapAsync.join(deadline=) bridges.anyio.task_group(deadline=)
    bridges.aiohttp.setup(deadline=)
"""


def rows() -> list[tuple[list[str], str, list[str]]]:
    """Old names, the text about the new ones, and the new names."""
    section = GUIDE.partition("## From 0.1 to 0.2")[2]
    return [
        (re.findall(r"`([^`]+)`", old), new, re.findall(r"`([^`]+)`", new))
        for old, new in re.findall(r"^\| (.+) \| (.+) \|$", section, re.MULTILINE)
        if "---" not in old and old != "0.1"
    ]


def test_every_name_of_0_1_is_in_the_table() -> None:
    old = [f"{module}{name}" for module, names in NAMES.items() for name in names.split()]
    table = {name for names, _, _ in rows() for name in names}
    assert [name for name in [*old, *CHANGED.split()] if name not in table] == []


def exists(name: str) -> bool:
    """Whether handfast has this name, with the parameter after "(", if any."""
    path, _, parameter = name.partition("(")
    value: Any = import_module("handfast")
    for part in path.split("."):
        value = getattr(value, part, None) or _submodule(value, part)
        if value is None:
            return False
    parameter = re.split(r"[=)]", parameter)[0]
    return not parameter or parameter in inspect.signature(value).parameters


def _submodule(value: Any, part: str) -> Any:
    try:
        return import_module(f"{value.__name__}.{part}")
    except (AttributeError, ImportError):
        return getattr(value, "__annotations__", {}).get(part)


def test_every_name_of_0_2_in_the_table_exists() -> None:
    missing = []
    for old, text, new in rows():
        if text.startswith(("the same, in", "the same names in")):
            new = [f"{new[0]}.{name.split('.')[-1]}" for name in old]
        elif text == "the same":
            new = old
        elif text.startswith(("removed", "private", "an example")):
            continue
        assert new
        missing += [name for name in new if not exists(name)]
    assert missing == []


@pytest.mark.parametrize("name", ["Slots", "Scope.serve", "Scope.close(deadline=)", "leaks.watch"])
def test_a_name_of_0_1_does_not_exist(name: str) -> None:
    assert not exists(name)


def test_the_other_pages_use_no_name_of_0_1() -> None:
    old = re.compile(
        r"\bSlots?(?:Busy|Cancelled|Stuck)?\b|\bEnding\b|(?<!watch)\.serve\(|`split`|\bdeadline=|\buses="
        r"|leaks\.[wW]atch|\bleaks\.Watch|rx_langgraph|\bdpor\b|\.keep\(|\.reject\("
    )
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
    found = [
        f"{page.relative_to(ROOT)}: {match[0]}"
        for page in pages
        if page.name != "migration.md"
        for match in old.finditer(page.read_text())
    ]
    assert found == []
