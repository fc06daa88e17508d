"""The page: self-contained, inert whatever the names are, and drawn by a browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from handfast._watch.views.page import page
from handfast.watch import KeptTasks, LiveScope, NeverWakes, Snapshot
from tests.watch.views.snapshots import BOT, HOSTILE, loop, place, process, snapshot, task

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def test_the_file_reaches_for_nothing_outside_itself() -> None:
    text = page(BOT)
    assert re.findall(r"(?:src|href)\s*=\s*\"([^\"]*)\"", text) == ["data:,"]
    assert not re.findall(r"https?://", text)
    assert "default-src 'none'" in text
    assert "@import" not in text


def test_it_has_findings_places_loops_and_the_tree() -> None:
    text = page(BOT)
    for code in ("HF102", "HF131", "HF141"):
        assert f"<b>{code}</b>" in text
    for shown in (
        "bot.py:88 poll",
        "finished, kept in attribute _log of bot.Hub",
        "uvloop.Loop",
        "5 × work",
        "app/bot.py:3 in f",
        "timers of a uvloop loop",
        "800 below 1m04, 12 below 2m08",
    ):
        assert html.escape(shown) in text, shown


def test_a_loop_that_is_held_up_is_shown_with_its_stack() -> None:
    stuck = loop(1, blocked_for=2.5, blocked_at=("a.py:1 in f", "db.py:7 in query"))
    text = page(snapshot(loops=(stuck,)))
    assert "BLOCKED for 2.5s" in text
    assert "a.py:1 in f\ndb.py:7 in query" in text


def test_an_empty_snapshot_is_a_page() -> None:
    text = page(snapshot(taken_at=float("inf")))
    assert "No place is known to grow" in text
    assert "at an unknown time" in text
    assert "{{" not in text


def test_a_young_watch_does_not_say_that_nothing_grows() -> None:
    assert "Nothing was found yet" in page(snapshot(process=process(watched_for=60.0)))


def test_a_long_tree_is_cut() -> None:
    tasks = tuple(task(n, waiting_at=(f"a.py:{n} in f",)) for n in range(20_100))
    assert "and 101 more lines" in page(snapshot(loops=(loop(20_100),), tasks=tasks))


# --- in a browser --------------------------------------------------------------------------------

_SEEN = """<script>
const button = [...document.querySelectorAll("#places th button")]
  .find((each) => each.textContent === "alive");
const column = () => [...document.querySelectorAll("#places tbody tr")].map(
  (row) => row.cells[2].textContent);
button.click();
const down = column();
button.click();
const up = column();
const filter = document.getElementById("filter");
filter.value = "APP/API";
filter.dispatchEvent(new Event("input"));
const left = [...document.querySelectorAll("#places tbody tr")].filter((row) => !row.hidden).length;
filter.value = "";
filter.dispatchEvent(new Event("input"));
const seen = document.createElement("output");
seen.id = "seen";
seen.hidden = true;
seen.textContent = JSON.stringify({down, up, left, evil: window.evil === true,
  wide: document.documentElement.scrollWidth > innerWidth, scripts: document.scripts.length});
document.body.append(seen);
</script></body>"""


def looked_at(text: str, folder: Path, size: str = "1280,900") -> tuple[dict[str, Any], str]:
    """What the script above saw in Chromium, and the browser's console."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH: the page was not looked at in a browser")
    file = folder / "page.html"
    file.write_text(text.replace("</body>", _SEEN), encoding="utf-8")
    command = [
        CHROMIUM,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={size}",
        f"--screenshot={folder / 'page.png'}",
        "--dump-dom",
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, timeout=100, check=True, cwd=folder)
    seen = re.search(r'<output id="seen" hidden="">(.*?)</output>', done.stdout.decode(), re.S)
    console = [line for line in done.stderr.decode().splitlines() if "CONSOLE" in line]
    assert seen is not None, console
    assert (folder / "page.png").read_bytes().startswith(b"\x89PNG")
    return json.loads(html.unescape(seen[1])), "\n".join(console)


def test_chromium_sorts_and_filters_the_places(tmp_path: Path) -> None:
    seen, console = looked_at(page(BOT), tmp_path)
    assert console == ""
    assert seen["down"] == ["1,033", "812", "300", "85", "7", "7"]
    assert seen["up"] == seen["down"][::-1]
    assert seen["left"] == 2
    assert not seen["wide"]


def hostile() -> Snapshot:
    script = "</script><script>window.evil = true</script><img src=x onerror=window.evil=true>\"'>"
    nasty = script + HOSTILE
    return snapshot(
        process=process(1, nasty),
        loops=(loop(1, blocked_for=1.0, blocked_at=(nasty,)),),
        places=(place(1, 1, file=nasty, function=nasty, waiting_at=nasty),),
        tasks=(task(1, name=nasty, coroutine=nasty, waiting_at=(nasty,), waits_for=nasty),),
        scopes=(LiveScope(1, nasty, nasty, nasty, 0),),
        kept=(KeptTasks(nasty, 1),),
        never_wakes=(NeverWakes(1, nasty, nasty),),
        not_checked=(nasty,),
    )


def test_chromium_runs_nothing_of_hostile_names(tmp_path: Path) -> None:
    seen, console = looked_at(page(hostile()), tmp_path, size="500,800")
    assert console == ""
    assert not seen["evil"]
    assert seen["scripts"] == 2
    assert not seen["wide"]
