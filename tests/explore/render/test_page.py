"""The page: one file that needs nothing else, looked at in a real browser."""

from __future__ import annotations

import asyncio
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from handfast._explore.render.page import page
from handfast._explore.search.plan import Plan
from handfast._explore.trace.model import Trace
from handfast._explore.verdict.verdict import Verdict
from tests.explore.render.traced_programs import (
    EXAMPLES,
    answered_crowd,
    crowd,
    example_trace,
    traced,
)

TOKEN = "hf1.token"
REPLAY = f"handfast explore bank:window --replay {TOKEN}"
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def written(name: str) -> str:
    return page(*example_trace(name), TOKEN, REPLAY)


def data(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="trace">(.*?)</script>', text, re.S)
    assert found is not None
    loaded: dict[str, Any] = json.loads(found[1])
    return loaded


# --- the file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_the_file_reaches_for_nothing_outside_itself(name: str) -> None:
    text = written(name)
    assert re.findall(r"(?:src|href)\s*=\s*\"([^\"]*)\"", text) == ["data:,"]
    addresses = set(re.findall(r"https?://[^\s\"')]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text
    assert "@import" not in text
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket", text)


def test_the_trace_is_in_the_file_with_its_verdict_token_and_replay_line() -> None:
    trace, verdict = example_trace("window")
    found = data(page(trace, verdict, TOKEN, REPLAY))
    assert found["verdict"]["advice"] == verdict.advice
    assert found["verdict"]["code"] == verdict.code
    assert found["verdict"]["message"] == verdict.message
    assert (found["token"], found["replay"]) == (TOKEN, REPLAY)
    assert [lane["name"] for lane in found["lanes"]] == ["window", "borrower", "the loop"]
    assert found["facts"]["departures"] == 1
    # The first lane, the first place and the beginning of time are zero, and are still there.
    assert {"lane": 0, "step": 1, "time": 0.0}.items() <= found["items"][0].items()


def test_what_comes_from_outside_has_a_lane_in_the_page() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        channel = loop.channel("wire")  # type: ignore[attr-defined]
        channel.post(lambda: future.set_result(None), label="hello", after=1)
        loop.call_soon(loop.create_task, asyncio.sleep(0))
        await future

    found = data(page(*traced(program), "", ""))
    assert [lane["kind"] for lane in found["lanes"]] == ["task", "task", "loop", "outside"]
    assert found["lanes"][1]["created"] == ""
    assert found["verdict"] is None


def test_nothing_that_a_program_says_can_leave_its_place() -> None:
    async def program() -> None:
        await asyncio.create_task(asyncio.sleep(0), name="</script><b>{{data}}{{script}}")
        raise ValueError("</title><!-- <script> {{style}}")

    text = page(*traced(program), "<b>", "<i>")
    assert data(text)["lanes"][1]["name"] == "</script><b>{{data}}{{script}}"
    assert text.count("<script") == text.count("</script>") == 2
    assert text.count("</title>") == text.count("<noscript>") == 1
    assert "&lt;/title&gt;" in text


def test_a_reader_without_scripts_gets_the_plain_text() -> None:
    plain = html.unescape(written("window").partition("<noscript>")[2])
    assert "borrower is cancelled after it was woken" in plain


def test_two_thousand_steps_are_folded_and_can_be_opened() -> None:
    trace, verdict = traced(answered_crowd(4, 250), Plan(choices=((700, 1),)))
    found = data(page(trace, verdict, TOKEN, REPLAY))
    folds = [item for item in found["items"] if "fold" in item]
    assert len(found["items"]) < 50
    assert all(item["open"] for item in folds)
    assert sum(len(item["fold"]) for item in folds) + len(found["items"]) - len(folds) > 2000


def test_more_than_a_browser_draws_with_ease_is_left_out_and_its_outcome_kept() -> None:
    trace, verdict = traced(crowd(3, 1500))
    text = page(trace, verdict, TOKEN, REPLAY)
    (fold,) = (item for item in data(text)["items"] if "fold" in item)
    assert (fold["fold"], fold["open"]) == ([], False)
    assert fold["after"][0] == "waits"
    assert len(text) < 100_000


def test_more_tasks_than_lanes_are_counted() -> None:
    found = data(page(*traced(crowd(60, 0)), "", ""))
    assert len(found["lanes"]) == 14
    assert found["lanes"][-1]["kind"] == "loop"
    assert found["unseen"] == 61 - 13


def test_an_unknown_code_and_an_empty_trace_are_shown() -> None:
    trace, _ = example_trace("window")
    assert data(page(trace, Verdict("HF000", "odd"), "", ""))["verdict"]["name"] == ""
    assert data(page(Trace(), None, "", ""))["items"] == []


# --- in the browser ----------------------------------------------------------------------------

# Walks through the page by keyboard alone, and leaves what it saw in the document.
_WALK = """<script>
(() => {
  const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const chosen = () => document.querySelector('[aria-selected="true"]');
  const marked = (name) => document.querySelector(`#detail .${name}`)?.textContent ?? "";
  const seen = { first: chosen().textContent, source: marked("fault") };
  press("n"); seen.departure = chosen().textContent;
  seen.there = marked("here");
  press("Home"); seen.home = chosen().textContent;
  press("ArrowDown"); seen.down = chosen().textContent;
  press("f"); seen.fault = chosen().textContent;
  press("Home");
  for (let i = 0; i < 60 && !chosen().classList.contains("fold"); i += 1) press("ArrowDown");
  seen.rowsFolded = document.querySelectorAll("#rows .row").length;
  press("Enter"); seen.rowsUnfolded = document.querySelectorAll("#rows .row").length;
  press("a"); seen.rowsAll = document.querySelectorAll("#rows .row").length;
  seen.wide = document.documentElement.scrollWidth > innerWidth;
  const output = document.createElement("output");
  output.id = "seen";
  output.textContent = JSON.stringify(seen);
  document.body.append(output);
})();
</script>"""


def looked_at(
    text: str, folder: Path, *, size: str = "1280,900"
) -> tuple[str, dict[str, Any], str]:
    """The document after its scripts have run, what the walk saw, and the browser's console."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH: the page was not looked at in a browser")
    file = folder / "story.html"
    file.write_text(text.replace("</body>", f"{_WALK}</body>"), encoding="utf-8")
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
    dom = done.stdout.decode()
    output = re.search(r'<output id="seen">(.*?)</output>', dom, re.S)
    console = [line for line in done.stderr.decode().splitlines() if "CONSOLE" in line]
    assert output is not None, console
    assert (folder / "page.png").read_bytes().startswith(b"\x89PNG")
    return dom, json.loads(html.unescape(output[1])), "\n".join(console)


def test_chromium_shows_lanes_arrows_the_failing_line_and_its_source(tmp_path: Path) -> None:
    trace, verdict = example_trace("window")
    dom, seen, console = looked_at(page(trace, verdict, TOKEN, REPLAY), tmp_path)
    assert console == ""
    assert f'<span class="code">{verdict.code}</span>' in dom
    for said in (f"handfast explain {verdict.code}", TOKEN, REPLAY, verdict.message):
        assert html.escape(said, quote=False) in dom
    assert dom.count('class="name"') == 3
    for drawn in ("ready", "waits", "arrow wakes", "arrow starts", "cut", "mark"):
        assert f'class="{drawn}"' in dom, drawn
    assert seen["first"] == seen["fault"]
    assert "assert pool" in seen["fault"]
    assert "assert pool" in seen["source"]
    assert seen["departure"].startswith("» cancel")
    assert "await handed" in seen["there"]
    assert seen["home"] != seen["down"]
    assert not seen["wide"]


def test_chromium_unfolds_two_thousand_steps_in_a_narrow_window(tmp_path: Path) -> None:
    trace, verdict = traced(answered_crowd(4, 250), Plan(choices=((700, 1),)))
    _, seen, console = looked_at(page(trace, verdict, TOKEN, REPLAY), tmp_path, size="500,800")
    assert console == ""
    assert seen["rowsFolded"] < 50 < seen["rowsUnfolded"] < seen["rowsAll"]
    assert seen["rowsAll"] > 2000
    assert not seen["wide"]
