"""The story of the guide on `handfast.watch`, for real: the shop of `examples/shop` under load.

`python -m tests.support.watch_story [SECONDS]` prints what the commands print, and writes the pictures
of the guide into docs/assets.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handfast.watch import connect

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs" / "assets"
# As HANDFAST_WATCH=shop does it where handfast is installed from a wheel.
_SERVER = """
import runpy
from handfast import watch
watch.serve("shop")
runpy.run_module("examples.shop.server", run_name="__main__")
"""


@contextmanager
def shop() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The server under watch, and its port."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PORT": "0"},
    ) as server:
        try:
            assert server.stdout is not None
            yield server, int(server.stdout.readline().split()[1])
        finally:
            server.kill()


def load(port: int, seconds: float) -> subprocess.Popen[str]:
    """Orders, from a process of their own."""
    return subprocess.Popen(
        [sys.executable, "-m", "examples.shop.load", str(seconds)],
        cwd=ROOT,
        text=True,
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.PIPE,
    )


def command(*words: str) -> str:
    """What a command of handfast prints."""
    return subprocess.run(
        [sys.executable, "-m", "handfast", *words],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "COLUMNS": "100"},
    ).stdout


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def main(seconds: float) -> None:
    """Print the story, and draw its pictures."""
    with tempfile.TemporaryDirectory() as folder, shop() as (server, port):
        sending = load(port, seconds)
        try:
            time.sleep(seconds / 2)
            before = str(Path(folder, "before.json"))
            commands = [("ps",), ("snapshot", "shop", "-o", before)]
            _print(commands)
            time.sleep(seconds / 2 - 5)
            _print([("diff", before, "shop"), ("top", "shop"), ("tree", "shop")])
            draw_top(server.pid, ASSETS / "watch-top.svg")
            page = Path(folder, "page.html")
            command("dump", "shop", "--html", str(page))
            draw_page(page, ASSETS / "watch-page.png")
            say(sending.communicate()[0])
        finally:
            sending.kill()


def _print(commands: list[tuple[str, ...]]) -> None:
    for words in commands:
        say(f"$ handfast {' '.join(words)}\n{command(*words)}")


def draw_top(pid: int, file: Path) -> None:
    """Save the live screen, 100 x 16, as an SVG without the address of a font."""
    from handfast._watch.views.screen import Lines, Top

    async def run() -> str:
        with connect(pid) as client:
            app = Top(client)
            async with app.run_test(size=(100, 16)) as pilot:
                while not app.query_one(Lines).texts:
                    await asyncio.sleep(0.1)
                await pilot.pause()
                return app.export_screenshot(title="handfast top shop")

    drawn = re.sub(r"@font-face \{.*?\}\s*", "", asyncio.run(run()), flags=re.S)
    file.write_text(drawn, encoding="utf-8")


def draw_page(page: Path, file: Path) -> None:
    """Save a picture of the page."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        say("no chromium: the page is not drawn")
        return
    subprocess.run(
        [
            chromium,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={page.with_name('profile')}",
            "--window-size=1100,800",
            f"--screenshot={file}",
            page.as_uri(),
        ],
        check=True,
        capture_output=True,
    )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 150.0)
