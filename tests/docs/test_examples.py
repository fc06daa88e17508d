"""Every Python example of the README and the guides runs as it stands, and prints what stands below it.

An example is a complete program: it is run as `python -W error app.py`, in a folder of its own. The
`text` block that follows it is what it prints; one with the title "standard error" is what it says
there. Without such a block it prints nothing. The catalogue's examples are run in tests/catalogue.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import holdfast

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^( *)```(\w*)(.*)\n((?:.*\n)*?)\1```$", re.MULTILINE)
STDERR = 'title="standard error"'


class Example(NamedTuple):
    """One program of the docs, and what the page says it prints."""

    place: str
    options: str
    program: str
    stdout: str
    stderr: str


def examples() -> Iterator[Example]:
    for page in PAGES:
        yield from examples_of(page.read_text(), str(page.relative_to(ROOT)))


def examples_of(text: str, page: str) -> Iterator[Example]:
    """The Python blocks of a page, each with the `text` blocks between it and the next block."""
    pending: Example | None = None
    for fence in FENCE.finditer(text):
        _, language, options, block = fence.groups()
        block = textwrap.dedent(block)
        if language == "text" and pending is not None:
            field = "stderr" if STDERR in options else "stdout"
            pending = pending._replace(**{field: block})
            continue
        if pending is not None:
            yield pending
        line = text.count("\n", 0, fence.start()) + 1
        pending = (
            Example(f"{page}:{line}", options.strip(), block, "", "")
            if language in ("python", "py")
            else None
        )
    if pending is not None:
        yield pending


EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
def test_an_example_runs_and_prints_what_the_page_says(example: Example, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(example.program)
    result = subprocess.run(
        [sys.executable, "-W", "error", "app.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(holdfast.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.stdout, result.stderr) == (example.stdout, example.stderr)
    assert result.returncode == 0


def test_no_example_is_left_out() -> None:
    """Nothing is marked as not to be run, and no fence is written in a way that is not found."""
    assert [example.place for example in EXAMPLES if "no-run" in example.options] == []
    written = sum(len(re.findall(r"^\s*[`~]{3,}\s*py", p.read_text(), re.M)) for p in PAGES)
    assert len(EXAMPLES) == written


def test_a_text_block_belongs_to_the_example_before_it() -> None:
    page = "```python\n1\n```\nIt prints:\n```text\na\n```\n```sh\nls\n```\n```text\nb\n```\n"
    assert [(e.program, e.stdout) for e in examples_of(page, "p")] == [("1\n", "a\n")]
