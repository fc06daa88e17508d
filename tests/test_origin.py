"""Origins: right line, cheap to keep, shared, bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handfast import _origin as origin_module
from handfast._origin import Origin, intern_origin


def test_an_origin_names_file_line_function_and_source() -> None:
    here = Origin.here()
    assert here.filename == __file__
    assert here.function == "test_an_origin_names_file_line_function_and_source"
    assert here.source == "here = Origin.here()"
    lines = Path(__file__).read_text().splitlines()
    assert lines[here.lineno - 1].strip() == here.source
    assert str(here).endswith(f"{Path(__file__).name}:{here.lineno} in {here.function}")
    assert repr(here) == f"<Origin {here}>"


def test_depth_counts_outwards() -> None:
    def inner() -> Origin:
        return Origin.here(1)

    assert inner().function == "test_depth_counts_outwards"


def test_two_calls_on_two_lines_differ_and_one_line_is_shared() -> None:
    origins = [Origin.here() for _ in range(3)]
    assert origins[0] is origins[1] is origins[2]
    other = Origin.here()
    assert other != origins[0]
    assert len({*origins, other}) == 2
    assert origins[0] == Origin(origins[0].code, origins[0].lasti)
    assert origins[0] != "somewhere"


def test_an_instruction_without_a_line_falls_back_to_the_functions_first() -> None:
    code = compile("x = 1\n", "made up", "exec")
    assert Origin(code, 10_000).lineno == 1
    assert Origin(code, 0).source == ""


def test_a_path_is_shown_relative_where_that_is_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = compile("x = 1\n", str(tmp_path / "app.py"), "exec")
    monkeypatch.chdir(tmp_path)
    assert str(Origin(code, 0)).startswith("app.py:")
    monkeypatch.chdir("/")
    assert str(tmp_path).lstrip("/") in str(Origin(code, 0))


def test_a_working_directory_that_is_gone_does_not_hurt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    os.rmdir(gone)
    here = Origin.here()
    assert here.filename in str(here)
    monkeypatch.undo()


def test_code_made_on_the_fly_does_not_fill_the_table_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(origin_module, "_FULL", 10)
    monkeypatch.setattr(origin_module, "_ORIGINS", {})
    codes = [compile(f"x = {n}", "made up", "exec") for n in range(50)]
    origins = [intern_origin(code, 0) for code in codes]
    assert len(origin_module._ORIGINS) <= 10
    assert all(origin.code is code for origin, code in zip(origins, codes, strict=True))
