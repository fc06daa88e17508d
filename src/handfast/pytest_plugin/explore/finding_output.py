"""What is printed with a finding: the line that replays it, and the page with the rest."""

from __future__ import annotations

import os
import re
import shlex
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from handfast._explore.result import Counterexample

# The options that decide how a test runs; the value may be the next word.
_KEPT = re.compile(r"(-[opc]|--(asyncio-mode|import-mode|config-file|override-ini)(?==|$))")


def replay_line(item: pytest.Item, token: str, *options: str) -> str:
    """The command that replays a schedule of this test, from the folder in which pytest started."""
    _, colons, name = item.nodeid.partition("::")
    invocation = item.config.invocation_params
    file = os.path.relpath(item.path, invocation.dir)
    words = [f"{file}{colons}{name}", f"--handfast-replay={token}", *options]
    words += _kept([str(each) for each in invocation.args])
    return " ".join(["pytest", *map(shlex.quote, words)])


def _kept(arguments: list[str]) -> Iterator[str]:
    """The options of this run without which the test may be another one."""
    words = iter(arguments)
    for word in words:
        found = _KEPT.match(word)
        if found is None:
            continue
        kept = [word, *([next(words, "")] if found.end() == len(word) else [])]
        if not "".join(kept).startswith("-pno:"):
            yield from kept


def with_page(item: pytest.Item, found: Counterexample, line: str, text: str) -> str:
    """The text of a finding, with its page if `--handfast-html` asks for pages."""
    folder = item.config.getoption("handfast_html")
    if not folder:
        return text
    page = Path(folder) / _file_name(item.nodeid)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(found.to_html(line), encoding="utf-8")
    except OSError as error:
        return f"{text}\npage: not written to {page}: {error.strerror}"
    return f"{text}\npage: {page}"


def _file_name(nodeid: str) -> str:
    """Return a file name for a test; the checksum keeps similar names apart."""
    plain = re.sub(r"[^\w.-]+", "-", nodeid).strip("-")[-100:]
    return f"{plain}-{zlib.crc32(nodeid.encode(errors='replace')):08x}.html"
