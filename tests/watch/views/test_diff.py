"""What changed between two snapshots."""

from __future__ import annotations

import json

from handfast._watch.diff import compare
from handfast._watch.views.diff import diff, diff_as_json
from handfast.watch import KeptTasks, NeverWakes
from tests.watch.views.snapshots import HOSTILE, loop, place, process, snapshot

BEFORE = snapshot(
    loops=(loop(30),),
    places=(place(1, 10), place(2, 5), place(3, 15), place(5, 4)),
    kept=(KeptTasks("a", 3), KeptTasks("b", 1)),
)
AFTER = snapshot(
    process=process(watched_for=21_660.0),
    taken_at=1.7e9 + 60,
    loops=(loop(42),),
    # The numbers of places are not the same as before.
    places=(place(7, 25, line=11, created=1200), place(2, 5), place(4, 9), place(5, 0)),
    kept=(KeptTasks("a", 7),),
    never_wakes=(NeverWakes(2, "x.py:1 in f", "Event.wait"),),
)


def test_places_are_matched_by_file_function_and_line() -> None:
    assert diff(compare(BEFORE, AFTER), 100) == (
        "after 1m00: alive 30 → 42 (+12)\n"
        "\n"
        "            alive    before       now   created  created at\n"
        "grew          +15        10        25      +200  bot.py:11 poll\n"
        "gone           -4         4         0        +0  bot.py:15 poll\n"
        "shrank         -6        15         9    +1,000  bot.py:14 poll\n"
        "\n"
        "finished, but kept in:\n"
        "grew           +4         3         7  a\n"
        "gone           -1         1         0  b\n"
        "\n"
        "never wakes:\n"
        "new            +2         0         2  Event.wait at x.py:1 in f\n"
    )


def test_a_place_that_moved_in_its_function_is_the_same_only_if_there_is_one() -> None:
    two = compare(
        snapshot(places=(place(1, 1), place(2, 2))), snapshot(places=(place(8, 3), place(9, 4)))
    )
    assert sorted(each.change for each in two.places) == ["gone", "gone", "new", "new"]


def test_two_calls_on_one_line_are_one_place() -> None:
    twice = (place(1, 2, line=5), place(2, 3, line=5))
    (change,) = compare(snapshot(places=twice), snapshot(places=(place(1, 9, line=5),))).places
    assert (change.before, change.after) == (5, 9)


def test_a_process_that_was_started_anew_has_no_number_of_created_tasks() -> None:
    again = snapshot(process=process(watched_for=1.0), places=(place(1, 9),))
    changes = compare(BEFORE, again)
    assert not changes.same_process
    assert changes.places[0].created is None
    assert "two processes" in diff(changes)


def test_nothing_changed() -> None:
    assert diff(compare(BEFORE, BEFORE)).endswith("No place has more or fewer tasks.\n")


def test_many_changes_are_cut() -> None:
    many = snapshot(places=tuple(place(each, 1) for each in range(60)))
    assert "and 10 more places" in diff(compare(snapshot(), many))


def test_json_has_the_same_changes() -> None:
    data = json.loads(json.dumps(diff_as_json(compare(BEFORE, AFTER))))
    assert data["alive"] == {"before": 30, "after": 42}
    assert data["places"][0] == {
        "change": "grew",
        "file": "app/bot.py",
        "line": 11,
        "function": "poll",
        "before": 10,
        "after": 25,
        "created": 200,
    }
    assert [each["container"] for each in data["kept"]] == ["a", "b"]
    assert data["never_wakes"][0]["waits_for"] == "Event.wait at x.py:1 in f"


def test_hostile_names_do_not_control_the_terminal() -> None:
    nasty = snapshot(places=(place(1, 9, function=HOSTILE),), kept=(KeptTasks(HOSTILE, 3),))
    text = diff(compare(snapshot(), nasty), 80)
    assert text.replace("\n", "").isprintable()
