"""The summary of a run: grouped by origin, most first, nothing cut and nothing left out."""

from __future__ import annotations

from collections import Counter

from handfast._leaks.summary import summary
from tests.leaks.sample_leak import a_leak


def test_leaks_are_grouped_by_origin_and_the_most_come_first() -> None:
    leaks = [a_leak("HF721", created_at="src/wire.py:3 in read")]
    leaks += [a_leak(owner=f"tests/test_bot.py::test_it[{n % 9}]") for n in range(12)]
    assert summary(leaks) == [
        "12  HF102 task-left-over  src/bot.py:12 in Bot.start",
        "    left by 9 tests or fixtures, such as tests/test_bot.py::test_it[0]",
        " 1  HF721 timer-left-over  src/wire.py:3 in read",
        "    left by tests/test_bot.py::test_start",
    ]


def test_two_kinds_from_one_line_and_one_kind_from_two_lines_are_separate() -> None:
    leaks = [
        a_leak(),
        a_leak("HF721"),
        a_leak(created_at="src/bot.py:13 in Bot.start"),
        a_leak(created_at=None),
    ]
    heads = [line for line in summary(leaks) if line.startswith("1  ")]
    assert heads == [
        "1  HF102 task-left-over  an unknown line",
        "1  HF102 task-left-over  src/bot.py:12 in Bot.start",
        "1  HF721 timer-left-over  src/bot.py:12 in Bot.start",
        "1  HF102 task-left-over  src/bot.py:13 in Bot.start",
    ]


def test_the_order_in_which_workers_finish_changes_nothing() -> None:
    leaks = [
        a_leak(created_at=f"src/bot.py:{n} in f", owner=f"test_{n % 2}") for n in range(10, 20)
    ]
    leaks += [a_leak(owner="test_1"), a_leak(owner="test_0")]
    assert summary(leaks) == summary(reversed(leaks))


def test_what_could_not_be_checked_comes_last_with_how_often() -> None:
    blind = ["timers on a uvloop loop cannot be seen"] * 41 + ["children: there is no /proc"]
    report = summary([a_leak()], blind)
    assert report[2:] == [
        "not checked: timers on a uvloop loop cannot be seen (41 times)",
        "not checked: children: there is no /proc",
    ]
    assert summary([a_leak()], Counter(blind)) == report


def test_a_line_that_is_too_long_is_broken_and_not_cut() -> None:
    place = f"src/{'deep/' * 15}bot.py:12 in Bot.start"
    owner = f"tests/{'deep/' * 15}test_bot.py::test_start"
    assert summary([a_leak(created_at=place, owner=owner)]) == [
        "1  HF102 task-left-over",
        f"   {place}",
        "   left by",
        f"   {owner}",
    ]
    assert len(summary([a_leak(created_at=place, owner=owner)], width=200)) == 2


def test_without_owners_the_place_is_enough() -> None:
    assert summary([a_leak(owner="")]) == ["1  HF102 task-left-over  src/bot.py:12 in Bot.start"]


def test_without_leaks_there_are_no_lines() -> None:
    assert summary([]) == []
