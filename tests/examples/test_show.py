"""What is shown of an example, and what is said if a library is missing."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest

import examples
from examples.example import FIXED
from examples.show import what_explore_finds, what_leaks

EXAMPLE = examples.find("captures")
DOCS = Path(__file__).parents[2] / "docs" / "examples"


def test_an_example_is_found_by_its_name_and_by_the_number_of_its_report() -> None:
    for example in examples.all_examples():
        assert examples.find(example.name) is examples.find(str(example.number))


def test_an_unknown_name_is_an_error_that_lists_the_names() -> None:
    with pytest.raises(examples.NoSuchExample, match="there is no example '9'; there are captures"):
        examples.find("9")


def test_every_claim_names_a_command() -> None:
    commands = [claim.shown_by for example in examples.all_examples() for claim in example.claims]
    assert commands
    for each in commands:
        assert each.startswith(("handfast ", "python ", "pytest ")), each


@pytest.mark.parametrize("example", examples.all_examples(), ids=lambda example: example.name)
def test_the_docs_page_has_the_claims_and_the_fixed_program(example: examples.Example) -> None:
    page = (DOCS / f"{example.name}.md").read_text()
    for claim in example.claims:
        assert f"| {claim.report} | {claim.truth} | `{claim.shown_by}` |" in page
    for start, path in re.findall(r"^sed -n '/(.*)/,\$p' (\S+)$", page, re.MULTILINE):
        source = (DOCS.parents[1] / path).read_text()
        assert source[source.index(start) :] in page


def test_missing_libraries_are_named() -> None:
    bare = dataclasses.replace(EXAMPLE, needs=("json", "no_such_library"))
    section = what_leaks(bare, FIXED)
    assert section.text == "not shown: no_such_library is not installed"


def test_a_missing_library_is_not_reported_as_a_bug(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reactive = examples.find("reactive")
    monkeypatch.setitem(sys.modules, "examples.reactive.fixed", None)
    section = what_explore_finds(reactive, FIXED)
    lacking = "examples.reactive.fixed"
    assert section.text == f"not shown: {lacking} is not installed"
