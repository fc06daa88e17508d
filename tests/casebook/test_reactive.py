"""Seed 002, a reactive pipeline that runs graphs: what each version does. That S2.1 to S2.8 hold for
the bridge of the right one is shown in tests/bridges."""

import pytest

from holdfast.casebook import telling
from holdfast.casebook.case import AS_IT_SHOULD_BE, AS_PROPOSED, AS_REPORTED
from holdfast.casebook.reactive import CASE


@pytest.mark.parametrize("version", [AS_REPORTED, AS_PROPOSED])
def test_check_sees_that_the_clean_up_forgets_who_comes_meanwhile(version: str) -> None:
    assert " HF412 " in telling.what_check_says(CASE, version).text


def test_check_has_nothing_to_say_of_the_right_one() -> None:
    assert telling.what_check_says(CASE, AS_IT_SHOULD_BE).went_well


@pytest.mark.parametrize("version", [AS_REPORTED, AS_PROPOSED])
def test_a_message_that_comes_while_it_cleans_up_runs_on_lock_or_no_lock(version: str) -> None:
    chapter = telling.what_explore_finds(CASE, version)
    assert "cleaned up, and 1 run goes on" in chapter.text
    assert "0 departures" in chapter.text


def test_as_it_should_be_survives_every_schedule_that_is_tried() -> None:
    chapter = telling.what_explore_finds(CASE, AS_IT_SHOULD_BE)
    assert chapter.went_well, chapter.text


@pytest.mark.parametrize("version", [AS_REPORTED, AS_PROPOSED])
def test_with_real_parts_a_failed_run_ends_the_stream_and_a_late_one_is_left(version: str) -> None:
    chapter = telling.what_is_left(CASE, version)
    assert chapter.text.startswith("2 of 3 messages answered")
    assert "one after the clean-up taken" in chapter.text
    assert "HF102 task-left-over" in chapter.text


def test_with_real_parts_the_right_one_answers_all_and_leaves_nothing() -> None:
    chapter = telling.what_is_left(CASE, AS_IT_SHOULD_BE)
    assert chapter.text.startswith("3 of 3 messages answered")
    assert "one after the clean-up refused" in chapter.text
    assert chapter.went_well, chapter.text
