"""Every Python example of the README and the docs runs, and prints what the page shows.

An example is a complete program, `app.py` in an empty folder, run with warnings as errors: all of
them in this process, three of them in a separate process as well. The `text` block after an example
is what it prints; one with the title "standard error" is what it prints there. Without such a block
it prints nothing. The examples of the catalogue run in tests/catalogue, and those that a page includes
from a file in tests/examples/test_programs.py and tests/watch/test_story.py.
"""

from __future__ import annotations

import gc
import linecache
import os
import re
import runpy
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import handfast

ROOT = Path(__file__).parents[2]
SOURCE = Path(handfast.__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^( *)```(\w*)(.*)\n((?:.*\n)*?)\1```$", re.MULTILINE)
STDERR = 'title="standard error"'
INCLUDED = re.compile(r'--8<-- "examples/(programs|shop)/[\w/]+\.py(:\w+)?"\n')


class Example(NamedTuple):
    """One program of the docs, and what it prints according to the page."""

    place: str
    options: str
    program: str
    stdout: str
    stderr: str


# langsmith, which langgraph imports, calls this on 3.14 and later.
NOT_OURS = "ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning"


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
            if language in ("python", "py") and not INCLUDED.fullmatch(block)
            else None
        )
    if pending is not None:
        yield pending


EXAMPLES = list(examples())


def run_separately() -> list[Example]:
    """The first example, the first with a child process, and the first with a thread: what an
    interpreter prints at exit is visible only in a separate process."""
    words = ("", "Process(", "thread")
    return [next(each for each in EXAMPLES if word in each.program) for word in words]


@pytest.mark.usefixtures("small_heap")  # some of them collect garbage a thousand times
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
def test_an_example_prints_what_the_page_shows(
    example: Example,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "app.py").write_text(example.program)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["app.py"])
    linecache.clearcache()  # every example is called app.py
    runpy.run_path("app.py", run_name="__main__")
    gc.collect()
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (example.stdout, example.stderr)


@pytest.mark.parametrize("example", run_separately(), ids=lambda example: example.place)
def test_an_example_in_a_separate_process(example: Example, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(example.program)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-W", NOT_OURS, "app.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (SOURCE, ROOT)))},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.stdout, result.stderr) == (example.stdout, example.stderr)
    assert result.returncode == 0


def test_every_example_is_run() -> None:
    """No example is marked as not to be run, and no fence has a form that is not recognised."""
    assert [example.place for example in EXAMPLES if "no-run" in example.options] == []
    text = "".join(page.read_text() for page in PAGES)
    written = len(re.findall(r"^\s*[`~]{3,}\s*py", text, re.M))
    assert len(EXAMPLES) + len(INCLUDED.findall(text)) == written


def test_a_text_block_belongs_to_the_example_before_it() -> None:
    page = "```python\n1\n```\nIt prints:\n```text\na\n```\n```sh\nls\n```\n```text\nb\n```\n"
    assert [(e.program, e.stdout) for e in examples_of(page, "p")] == [("1\n", "a\n")]
