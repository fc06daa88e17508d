"""The figure of the states in the lifecycle guide shows the table in the code, arrow for arrow."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from handfast._runtime.scope.states import TRANSITIONS, State

DOCS = Path(__file__).parents[2] / "docs"
FIGURE = ElementTree.parse(DOCS / "assets" / "lifecycle.svg")


def test_every_transition_is_one_arrow() -> None:
    drawn = [
        (edge.get("data-from"), edge.get("data-event"), edge.get("data-to"))
        for edge in FIGURE.iter()
        if edge.get("class") == "edge"
    ]
    table = [
        (state.value, event.value, after.value)
        for state, row in TRANSITIONS.items()
        for event, after in row.items()
    ]
    assert sorted(map(str, drawn)) == sorted(map(str, table))


def test_every_state_and_event_is_named_in_the_figure() -> None:
    words = " ".join(text.text or "" for text in FIGURE.iter() if text.tag.endswith("}text"))
    for row in TRANSITIONS.values():
        for event in row:
            assert event.value in words
    assert all(state.value in words for state in State)


def test_the_guide_says_which_states_take_work() -> None:
    guide = (DOCS / "guides" / "lifecycle.md").read_text()
    for state in State:
        assert f"| {state.value} | {'yes' if state.takes_work else 'no'} |" in guide
