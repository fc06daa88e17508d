"""Draws the pictures of the README and the docs again: `python docs/pictures.py`.

`assets/audit.svg` is what `handfast audit --demo` prints, drawn by rich. `assets/explore-timeline.png`
is the page of the first counterexample of the guide to the explorer, as Chromium shows it.
"""

from __future__ import annotations

import io
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from rich.console import Console

from handfast.explore import explore

DOCS = Path(__file__).parent
ASSETS = DOCS / "assets"
GUIDE = DOCS / "guides" / "explore.md"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH = 124


def main() -> None:
    """Draw all."""
    audit()
    timeline()


def audit() -> None:
    """The report of the demo, without the plan before it and the next steps after it."""
    command = [sys.executable, "-m", "handfast", "audit", "--demo"]
    printed = subprocess.run(command, capture_output=True, text=True).stdout
    report = printed[printed.index("\n\n") + 2 : printed.index("\nNot checked")]
    # A path and a token would be the longest lines of the picture, and say nothing in it.
    report = re.sub(r"[^\s(]*/bin/python", "python", report)
    report = re.sub(r"(--handfast-replay=hf1\.)\S+", r"\1...", report)
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print("$ handfast audit --demo\n", style="bold", highlight=False)
    console.print(report, markup=False)
    drawn = console.export_svg(title="handfast audit --demo", unique_id="audit")
    # No fonts from the network: a browser has one of its own.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    (ASSETS / "audit.svg").write_text(drawn, encoding="utf-8")


def timeline() -> None:
    """The page of a counterexample."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("no chromium on the PATH: the timeline was not drawn")
    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name)
        (folder / "app.py").write_text(first_example(), encoding="utf-8")
        program = runpy.run_path("app.py")["program"]  # the page shows the path
        found = explore(program, cancel=True).counterexample
        assert found is not None
        (folder / "page.html").write_text(
            found.to_html(f"handfast explore app:program --replay {found.token}"), encoding="utf-8"
        )
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        flags += [f"--user-data-dir={folder / 'profile'}", "--window-size=1280,760"]
        flags += ["--no-first-run", "--disable-background-networking", "--disable-quic"]
        picture = f"--screenshot={ASSETS / 'explore-timeline.png'}"
        subprocess.run(
            [browser, *flags, picture, (folder / "page.html").as_uri()],
            check=True,
            capture_output=True,
            timeout=100,
        )


def first_example() -> str:
    """The first program of the guide that has a victim."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    return next(block for block in blocks if "victim(" in block)


if __name__ == "__main__":
    main()
