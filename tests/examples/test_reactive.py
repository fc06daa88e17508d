"""Report 3, a reactive pipeline that runs graphs: what each version does. That S2.1 to S2.8 hold for
the bridge of the right one is shown in tests/bridges."""

import pytest

from examples import show
from examples.example import AS_PROPOSED, AS_REPORTED, FIXED
from examples.reactive import EXAMPLE


@pytest.mark.parametrize("version", [AS_REPORTED, AS_PROPOSED])
def test_check_finds_that_the_clean_up_misses_late_messages(version: str) -> None:
    assert " HF412 " in show.what_check_says(EXAMPLE, version).text


def test_check_finds_nothing_in_the_fixed_version() -> None:
    assert show.what_check_says(EXAMPLE, FIXED).ok


@pytest.mark.parametrize("version", [AS_REPORTED, AS_PROPOSED])
def test_a_message_during_the_clean_up_keeps_running_with_and_without_a_lock(version: str) -> None:
    section = show.what_explore_finds(EXAMPLE, version)
    assert "the clean-up is done, and 1 run is active" in section.text
    assert "0 changes" in section.text


def test_fixed_passes_all_explored_schedules() -> None:
    section = show.what_explore_finds(EXAMPLE, FIXED)
    assert section.ok, section.text


@pytest.mark.parametrize("version", [AS_REPORTED, AS_PROPOSED])
def test_with_real_parts_a_failed_run_ends_the_stream_and_a_late_one_leaks(version: str) -> None:
    section = show.what_leaks(EXAMPLE, version)
    assert section.text.startswith("2 of 3 messages answered")
    assert "one after the clean-up taken" in section.text
    assert "HF102 task-left-over" in section.text


def test_with_real_parts_the_fixed_version_answers_all_and_leaks_nothing() -> None:
    section = show.what_leaks(EXAMPLE, FIXED)
    assert section.text.startswith("3 of 3 messages answered")
    assert "one after the clean-up refused" in section.text
    assert section.ok, section.text
