"""The folder of kinds is the table: each file defines one, and each code is in the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from handfast import catalogue
from handfast._census import CHECKS, DEFAULT, ON_REQUEST, kinds
from handfast._census.kinds import KINDS
from handfast._census.known_libraries import _TABLE, Known, library_that_keeps


def test_each_file_is_a_kind() -> None:
    files = {path.stem for path in Path(kinds.__file__).parent.glob("*.py")} - {"__init__"}
    assert len(KINDS) == len(files)


def test_tasks_come_first_and_what_is_on_request_last() -> None:
    assert CHECKS[0] == "tasks"
    assert (*DEFAULT, *ON_REQUEST) == CHECKS
    assert set(ON_REQUEST) == {"descriptors", "memory", "retained"}


@pytest.mark.parametrize("name", KINDS)
def test_the_codes_of_a_kind_are_in_the_catalogue(name: str) -> None:
    assert KINDS[name].codes
    assert [catalogue.kind(code).code for code in KINDS[name].codes] == list(KINDS[name].codes)


@pytest.mark.parametrize("known", _TABLE, ids=lambda known: f"{known.what}-{known.name}")
def test_what_a_library_keeps_is_found_by_its_name(known: Known) -> None:
    assert library_that_keeps(known.what, known.name) == known.library
    assert library_that_keeps(known.what, "of the program") == ""
    assert known.why
    assert known.read_from
