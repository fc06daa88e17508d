"""How a case is told: nothing is written down beforehand, and what is not shown is said."""

import dataclasses
import sys
from pathlib import Path

import pytest

from holdfast import casebook
from holdfast.casebook.case import AS_IT_SHOULD_BE
from holdfast.casebook.pages import write_case, write_index
from holdfast.casebook.telling import Chapter, what_explore_finds, what_is_left

CASE = casebook.find("captures")


def test_a_case_is_found_by_its_name_and_by_the_number_of_its_seed() -> None:
    for case in casebook.cases():
        assert casebook.find(case.name) is casebook.find(case.seed)


def test_an_unknown_case_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(casebook.NoSuchCase, match="there is no case '9'; there are captures"):
        casebook.find("9")


def test_every_claim_names_a_command_of_holdfast() -> None:
    commands = [claim.shown_by for case in casebook.cases() for claim in case.claims]
    assert commands
    for each in commands:
        assert each.startswith(("holdfast ", "python ", "pytest ")), each


def test_real_parts_that_are_not_installed_are_named_and_not_passed_off_as_clean() -> None:
    bare = dataclasses.replace(CASE, needs=("json", "no_such_library"))
    chapter = what_is_left(bare, AS_IT_SHOULD_BE)
    assert chapter.text == "not shown: no_such_library is not installed"


def test_a_program_that_lacks_a_library_is_not_passed_off_as_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reactive = casebook.find("reactive")
    monkeypatch.setitem(sys.modules, "holdfast.casebook.reactive.as_it_should_be", None)
    chapter = what_explore_finds(reactive, AS_IT_SHOULD_BE)
    lacking = "holdfast.casebook.reactive.as_it_should_be"
    assert chapter.text == f"not shown: {lacking} is not installed"


def test_a_case_is_written_as_pages_that_lead_to_each_other(tmp_path: Path) -> None:
    told = [
        Chapter("what <check> says", "holdfast check a.py", "a < b", False),
        Chapter("the schedule", "holdfast explore x:y", "steps", False, page="<p>timeline</p>"),
        Chapter("the right one", "holdfast explore x:z", "nothing found", True),
    ]
    page = write_case(tmp_path / "new", CASE, told).read_text()
    assert "what &lt;check&gt; says" in page
    assert "<pre>a &lt; b</pre>" in page
    assert page.count('class="wrong"') == 2
    assert page.count('class="well"') == 1
    assert 'href="captures-2.html"' in page
    assert (tmp_path / "new" / "captures-2.html").read_text() == "<p>timeline</p>"
    first = write_index(tmp_path / "new", casebook.cases()).read_text()
    assert 'href="captures.html"' in first
    assert 'href="reactive.html"' not in first
