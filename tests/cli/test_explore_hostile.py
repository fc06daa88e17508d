"""`handfast explore` on programs that attack it: the command ends, with a status and a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.real_command import start

PROGRAMS = """
import asyncio, concurrent.futures, os

async def ends_the_process():
    os._exit(0)

async def process_pool():
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        await asyncio.get_running_loop().run_in_executor(pool, int)

async def surrogate_in_a_name():
    kept.append(asyncio.create_task(asyncio.sleep(9), name="\\udc80"))

kept = []
"""


@pytest.mark.parametrize(
    ("function", "status", "output"),
    [
        ("ends_the_process", 2, "os._exit is not controlled: it ends the process"),
        ("process_pool", 2, "is not controlled"),
        ("surrogate_in_a_name", 1, r"\udc80 created at"),
    ],
)
def test_it_ends_with_a_status_and_a_reason(
    tmp_path: Path, function: str, status: int, output: str
) -> None:
    program = tmp_path / "attack.py"
    program.write_text(PROGRAMS)
    page = tmp_path / "page.html"
    with start("explore", program, f"attack.py:{function}", "--html", str(page)) as process:
        printed, errors = process.communicate(timeout=120)
    assert process.returncode == status, errors
    assert output in printed + errors
    assert (page.exists() and page.stat().st_size > 1_000) == (status == 1)
