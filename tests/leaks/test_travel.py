"""A finding that has travelled says the same, word for word."""

from __future__ import annotations

import json

import pytest

from holdfast.leaks import Leak
from holdfast.leaks.baseline import Known
from holdfast.leaks.ignoring import Ignore
from holdfast.leaks.travel import from_data, to_data
from holdfast.origin import Origin
from tests.leaks.found import ROOT, a_leak

HERE = Origin.here()
LEAKS = {
    "alive": Leak(
        "HF102",
        "task 'poll' running poll",
        check="tasks",
        owner="tests/test_it.py::test_it[ä]",
        born=HERE,
        near=Origin.here(),
        stands=(str(HERE), str(HERE)),
    ),
    "bare": Leak("HF721", "timer", check="timers"),
    "travelled": a_leak(near="src/pool.py:7 in Pool.open"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_arrives_reads_the_same(name: str) -> None:
    leak = LEAKS[name]
    arrived = from_data(json.loads(json.dumps(to_data(leak))))
    assert str(arrived) == str(leak)
    assert (arrived.check, arrived.stands, arrived.owner) == (leak.check, leak.stands, leak.owner)
    assert to_data(arrived) == to_data(leak)


def test_what_arrives_can_be_sifted_as_before() -> None:
    arrived = from_data(to_data(LEAKS["alive"]))
    assert Known.of(arrived, ROOT) == Known.of(LEAKS["alive"], ROOT)
    assert Ignore(f"test_travel.py:{HERE.lineno}", "known").matches(arrived)
    assert arrived.born is not None
    assert arrived.born.source == "HERE = Origin.here()"
