"""What pyproject.toml names as a caller on a thread is one: for the rules, the workers and the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from handfast._check.engine import parallel as jobs
from handfast._check.model.syntax.module import Module
from handfast._check.model.threads.callbacks import declare
from handfast._check.model.threads.foreign_threads import thread_targets
from handfast._check.source import parse
from handfast.check import check

SOURCE = """\
import asyncio
{imports}

class Ear:
    def start(self, mike):
        {call}

    def heard(self, words):
        asyncio.create_task(say(words))
"""


def heard_on_thread(callback: str, call: str, imports: str = "") -> bool:
    source = SOURCE.format(call=call, imports=imports)
    module = Module(parse("app/ear.py", source.encode()), "app.ear")
    declare(module, [callback])
    found = {function.name for function in thread_targets(module)}
    assert found <= {"heard", "<lambda>"}
    return bool(found)


@pytest.mark.parametrize(
    ("callback", "call", "imports"),
    [
        ("audio.listen", "audio.listen(self.heard)", "import audio"),
        ("audio.listen", "hark(1, sink=self.heard)", "from audio import listen as hark"),
        ("audio.io.Mike", "a.Mike(lambda words: self.heard(words))", "import audio.io as a"),
        ("app.ear.hub.connect", "hub.connect(self.heard)", "hub = object()"),
        ("audio.*.connect", "mike.words.connect(self.heard)", "from audio.io import Mike"),
        ("audio.io.*.connect", "self.mike.connect([self.heard])", "import audio.io"),
        ("audio.*.on_words", "mike.on_words = self.heard", "import audio"),
        ("*.connect", "mike.connect(self.heard)", ""),
        ("*.on_words", "mike.on_words = self.heard", ""),
    ],
)
def test_what_it_is_given_runs_on_a_thread(callback: str, call: str, imports: str) -> None:
    if "lambda" in call:
        callback_names = {"<lambda>"}
        module = Module(
            parse("x.py", SOURCE.format(call=call, imports=imports).encode()), "app.ear"
        )
        declare(module, [callback])
        assert {each.name for each in thread_targets(module)} == callback_names
    else:
        assert heard_on_thread(callback, call, imports)


@pytest.mark.parametrize(
    ("callback", "call", "imports"),
    [
        ("audio.listen", "self.listen(self.heard)", "import audio"),
        ("audio.listen", "listen(self.heard)", "from other import listen"),
        ("audio.*.connect", "mike.connect(self.heard)", "import audiobook, my.audio"),
        ("audio.*.connect", "mike.disconnect(self.heard)", "import audio"),
        ("*.connect", "connect(self.heard)", ""),
        ("*.connect", "mike.connect(self.other)", ""),
        ("*.connect", "mike.connect(async_heard)", "async def async_heard(): ..."),
    ],
)
def test_others_are_left_alone(callback: str, call: str, imports: str) -> None:
    assert not heard_on_thread(callback, call, imports)


EAR = SOURCE.format(call="mike.words.connect(self.heard)", imports="import audio")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(EAR)
    return tmp_path


def settle(folder: Path, callbacks: str) -> None:
    text = f"[tool.handfast.check]\nthread-callbacks = [{callbacks}]\n"
    (folder / "pyproject.toml").write_text(text)


def test_the_setting_reaches_the_rules_and_is_a_part_of_the_question(here: Path) -> None:
    settle(here, "")
    assert not check(["."], select=["HF401"], cache="kept").findings
    settle(here, '"audio.*.connect"')
    first = check(["."], select=["HF401"], cache="kept").findings
    assert [each.place.line for each in first] == [9, 9]
    assert check(["."], select=["HF401"], cache="kept").findings == first
    settle(here, '"audio.*.disconnect"')
    assert not check(["."], select=["HF401"], cache="kept").findings


def test_the_setting_reaches_the_workers(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_PART", 1)
    settle(here, '"audio.*.connect"')
    assert len(check(["."], select=["HF401"], jobs=2).findings) == 2


def test_the_nearest_file_says_it_for_its_own_folder(here: Path) -> None:
    inner = here / "inner"
    inner.mkdir()
    (inner / "three.py").write_text(EAR)
    settle(inner, '"audio.*.connect"')
    [found] = check(["."], select=["HF401"]).findings
    assert found.place.path == "inner/three.py"


def test_a_file_that_ignores_a_code_still_knows_its_threads(here: Path) -> None:
    settle(here, '"audio.*.connect"')
    with (here / "pyproject.toml").open("a") as file:
        file.write('per-file-ignores = {"one.py" = ["HF2"]}\n')
    assert len(check(["."]).findings) >= 2
    assert {each.code for each in check(["."], select=["HF401"]).findings} == {"HF401"}
