"""A finding that has travelled says the same, word for word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handfast._leaks.baseline import key
from handfast._leaks.ignore import Ignore
from handfast._origin import Origin
from handfast.leaks import Leak
from tests.leaks.sample_leak import ROOT, a_leak

HERE = Origin.here()
LEAKS = {
    "alive": Leak(
        "HF102",
        "task 'poll' running poll",
        check="tasks",
        owner="tests/test_it.py::test_it[ä]",
        created_at=HERE,
        created_via=Origin.here(),
        waiting_at=(str(HERE), str(HERE)),
    ),
    "bare": Leak("HF721", "timer", check="timers"),
    "travelled": a_leak(created_via="src/pool.py:7 in Pool.open"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_arrives_reads_the_same(name: str) -> None:
    leak = LEAKS[name]
    arrived = Leak.from_data(json.loads(json.dumps(leak.to_data())))
    assert str(arrived) == str(leak)
    assert (arrived.check, arrived.waiting_at, arrived.owner) == (
        leak.check,
        leak.waiting_at,
        leak.owner,
    )
    assert arrived.to_data() == leak.to_data()


def test_what_arrives_matches_ignores_and_baselines_as_before() -> None:
    arrived = Leak.from_data(LEAKS["alive"].to_data())
    assert key(arrived, ROOT) == key(LEAKS["alive"], ROOT)
    assert Ignore(f"{Path(__file__).name}:{HERE.lineno}", "known").matches(arrived)
    assert arrived.created_at is not None
    assert arrived.created_at.source == "HERE = Origin.here()"
