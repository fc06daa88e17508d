"""Pages of the built site in a browser. `nox -s docs` builds the site and names its folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SITE = os.environ.get("HANDFAST_SITE", "")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.skipif(not SITE, reason="HANDFAST_SITE names no built site"),
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH"),
]
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)


def shown(page: str, folder: Path) -> tuple[str, list[str]]:
    """The document after its scripts have run, and the errors in the browser's console."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        f"--screenshot={folder / 'page.png'}",
        "--dump-dom",
        (Path(SITE).resolve() / page).as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, timeout=100, check=True, cwd=folder)
    assert (folder / "page.png").read_bytes().startswith(b"\x89PNG")
    console = [line for line in done.stderr.decode().splitlines() if "CONSOLE" in line]
    return done.stdout.decode(), [line for line in console if "rror" in line]


@pytest.mark.parametrize(
    ("page", "title", "contents"),
    [
        ("index.html", "handfast", 'src="assets/audit.svg"'),
        ("guides/leaks/index.html", "Leaks", "pytest --handfast"),
        ("catalogue/HF201/index.html", "HF201 slot-evicts-successor", "When to ignore it"),
    ],
)
def test_a_page_has_its_title_its_contents_and_working_files(
    page: str, title: str, contents: str, tmp_path: Path
) -> None:
    document, errors = shown(page, tmp_path)
    assert "<h1 id=" in document
    assert title in re.sub("<[^>]+>", "", document[document.index("<h1 id=") :][:200])
    assert contents in document
    # The search of the theme fetches its index, which a browser refuses for a file.
    assert [each for each in errors if "search" not in each and "CORS" not in each] == []
    folder = (Path(SITE) / page).parent
    files = re.findall(r'(?:src|href)="([^"#?]+\.(?:css|js|svg|png))"', document)
    assert files
    assert [each for each in files if not (folder / each).exists()] == []
