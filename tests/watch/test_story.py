"""The story of the guide: a shop that leaks one task in a hundred orders, and how it is found."""

from __future__ import annotations

import ast
import asyncio
import re
import time
from pathlib import Path

import aiohttp
import pytest

from handfast._watch.diff import compare
from handfast._watch.views.diff import diff
from handfast._watch.views.table import table
from handfast._watch.views.why import why
from handfast.watch import connect
from tests.support.watch_story import ROOT, load, shop

SERVER = ROOT / "examples" / "shop" / "server.py"
GUIDE = ROOT / "docs" / "guides" / "watch.md"
ORDERS = 300


def line_of(call: str) -> int:
    """The line of a call in the server."""
    return next(
        node.lineno
        for node in ast.walk(ast.parse(SERVER.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == call
    )


async def send_orders(port: int, numbers: range) -> list[int]:
    """The status of each answer."""

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=10)) as session:

        async def send(number: int) -> int:
            async with session.post(f"http://127.0.0.1:{port}/order/{number}") as answer:
                return answer.status

        return list(await asyncio.gather(*map(send, numbers)))


@pytest.mark.usefixtures("runtime_folder")
def test_the_place_that_leaks_is_named_by_diff_top_and_why() -> None:
    with shop() as (server, port), connect(server.pid) as client:
        before = client.summary()
        statuses = asyncio.run(send_orders(port, range(1, ORDERS + 1)))
        assert statuses.count(402) == ORDERS // 100
        # Receipts that are on their way end by themselves.
        created = f"server.py:{line_of('asyncio.create_task')} order"
        while True:
            now = client.snapshot()
            (place,) = (each for each in now.places if each.function == "order")
            if place.created == ORDERS and place.alive == ORDERS // 100:
                break
            time.sleep(0.05)
        assert f"+3         0         3      +300  {created}" in diff(compare(before, now))
        assert created in table(now)
        shown = why(now, place.id)
        assert shown[0] == f"3 tasks created at {created}"
        assert "send_receipt" in shown[3]


@pytest.mark.usefixtures("runtime_folder")
def test_the_load_of_the_guide_sends_orders() -> None:
    with shop() as (_, port), load(port, 0.5) as sending:
        answers = re.fullmatch(r"(\d+) answers\n", sending.communicate()[0])
        assert answers is not None
        assert int(answers[1]) >= 10


def test_the_guide_shows_the_lines_of_the_program_as_it_is() -> None:
    text = GUIDE.read_text()
    lines = SERVER.read_text().splitlines()
    assert set(re.findall(r"server\.py:(\d+) order", text)) == {str(line_of("asyncio.create_task"))}
    for number in re.findall(r"server\.py:(\d+) in send_receipt", text):
        assert "await paid" in lines[int(number) - 1]
    for picture in re.findall(r"\.\./assets/(watch-[\w.]+)", text):
        assert Path(ROOT, "docs", "assets", picture).is_file()
