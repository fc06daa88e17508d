"""The table of one process, and the list of processes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handfast._watch.views.cells import age, fit, place_names, width_of
from handfast._watch.views.place_rows import finding_rows, place_rows
from handfast._watch.views.table import processes_table, table
from tests.watch.views.snapshots import BOT, HOSTILE, loop, place, process, snapshot


def test_findings_come_first_each_with_its_code() -> None:
    assert table(BOT, 80) == (
        "4711  bot.py   loop 0.4 ms, p99 12 ms   alive 1,204 ▲   kept 1,033   never wake…\n"
        "        created at           alive    +/1k  oldest  waiting at\n"
        "HF102 ▲ bot.py:88 poll         812    +3.1    6h12  Queue.get ← bot.py:41 in fe…\n"
        "HF131   api.py:20 request    1,033       -       -  finished, kept in attribute…\n"
        "HF141   sync.py:9 drain          7       -    3h01  Queue.get ← sync.py:9 in dr…\n"
        "        api.py:20 request      300       -    7.5s\n"
        "        sync.py:9 drain          7       -    7.5s\n"
        "        (not known)             85       -       -  see the tree\n"
        "not checked: timers of a uvloop loop cannot be seen\n"
    )


@pytest.mark.parametrize("width", [60, 80, 99, 100, 132, 250])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    bare = replace(BOT, not_checked=())
    assert max(map(width_of, table(bare, width).splitlines())) <= width
    assert max(map(width_of, processes_table([bare], width).splitlines())) <= max(width, 70)


def test_a_wide_terminal_shows_how_many_were_created() -> None:
    assert "created  oldest" in table(BOT, 100)
    assert "1,000" in table(BOT, 100)


def test_places_beyond_the_limit_are_counted() -> None:
    many = snapshot(loops=(loop(500),), places=tuple(place(each, 5) for each in range(100)))
    text = table(many, 80, most=10)
    assert text.count("bot.py:") == 10
    assert "and 90 more places" in text


def test_a_loop_that_is_held_up_is_shown_with_its_line() -> None:
    stuck = loop(1, blocked_for=2.5, blocked_at=("a.py:1 in f", "db.py:7 in query"))
    text = table(snapshot(loops=(stuck, loop(1, 2))), 100)
    assert "BLOCKED for 2.5s: thread MainThread at db.py:7 in query" in text
    assert "2 loops, slowest 0.4 ms" in text


def test_a_loop_that_was_not_measured_yet_says_so() -> None:
    assert "not measured yet" in table(snapshot(loops=(replace(loop(1), lag_p50=None),)))


def test_the_list_of_processes_shows_what_grows_in_each() -> None:
    quiet = snapshot(process=process(12, "api"), loops=(loop(3),))
    lines = processes_table([BOT, quiet], 100).splitlines()
    assert lines[1].split() == ["4711", "bot.py", "3.13.0", "1", "1,204", "12", "ms", "6h00"]
    assert lines[2].strip() == "HF102 ▲  bot.py:88 poll: 812, Queue.get ← bot.py:41 in fetch"
    assert lines[-1].split()[:2] == ["12", "api"]


def test_files_of_one_name_are_shown_with_their_folder() -> None:
    names = place_names(
        [
            place(1, 1, file="a/bot.py"),
            place(2, 1, file="b/bot.py"),
            place(3, 1, file="x/__init__.py"),
        ]
    )
    assert list(names.values()) == ["a/bot.py:11 poll", "b/bot.py:12 poll", "x/__init__.py:13 poll"]


def test_a_filter_matches_any_part_of_a_row() -> None:
    rows = place_rows(BOT)
    assert [each.code for each in rows if "QUEUE.get" in each] == ["HF102", "HF141"]
    assert [each.code for each in rows if "app/api" in each] == ["HF131", ""]
    assert [each.code for each in finding_rows(BOT)] == ["HF102", "HF131", "HF141"]


def test_wide_characters_take_two_columns() -> None:
    assert fit("日本語", 5) == "日本…"
    assert fit("日本", 5, right=True) == " 日本"
    assert width_of("e\u0301") == 1
    assert fit("abc", 0) == ""


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), None])
def test_an_age_that_is_no_number_is_not_known(seconds: float | None) -> None:
    assert age(seconds) == "-"


def test_hostile_names_neither_control_the_terminal_nor_flood_it() -> None:
    nasty = place(1, 9, file=HOSTILE, function=HOSTILE, waiting_at=HOSTILE)
    text = table(snapshot(process=process(1, HOSTILE), loops=(loop(9),), places=(nasty,)), 80)
    assert text.replace("\n", "").isprintable()
    assert max(map(len, text.splitlines())) <= 80
