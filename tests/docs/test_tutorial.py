"""The tutorial is a session: its commands print what it shows, and its changes fix the bugs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from handfast._audit.demo import write_demo

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
STEP = re.compile(r"^```(console|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps() -> Iterator[tuple[str, str]]:
    """The commands and the changes, in order."""
    return ((found[1], found[2]) for found in STEP.finditer(PAGE.read_text(encoding="utf-8")))


def printed(command: str, folder: Path) -> list[str]:
    """What a command prints, in a folder."""
    words = command.split()
    if words == ["handfast", "audit", "--demo"]:  # only what it is about to run
        words = ["handfast", "audit", "--dry-run", "--minutes", "0.3"]
    # A search that finds nothing would take all of its seconds.
    quiet = ("-p", "no:cacheprovider", "--handfast-seconds=3") if words[0] == "pytest" else ()
    result = subprocess.run(
        [sys.executable, "-m", *words, *quiet],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": PLUGIN},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return result.stdout.splitlines()


PLUGIN = "handfast.pytest_plugin"


def changed(text: str, diff: str) -> str:
    """The text after the change, whose old lines are there once."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, before
    return text.replace(before, after)


def test_the_session_goes_as_the_page_shows_it(tmp_path: Path) -> None:
    write_demo(tmp_path)
    (tmp_path / "test_http.py").unlink(missing_ok=True)
    service = tmp_path / "service.py"
    commands = 0
    for kind, text in steps():
        if kind == "diff":
            service.write_text(changed(service.read_text(), text))
            continue
        command, *shown = text.removeprefix("$ ").splitlines()
        lines = printed(command, tmp_path)
        missing = [line for line in shown if not any(each.startswith(line) for each in lines)]
        assert missing == [], "\n".join([command, *lines])
        commands += 1
    assert commands == 9
    assert "# bug" not in service.read_text()
