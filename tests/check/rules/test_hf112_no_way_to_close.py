"""HF112: a class with a task that runs until cancelled has a close method."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.model.syntax.project import Project, count_ended
from handfast._check.rules.hf112_no_way_to_close import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str, *others: str) -> list[Finding]:
    content = source.encode()
    ended = count_ended([content, *(other.encode() for other in others)])
    return list(RULE.check(Module(parse("x.py", content), "x", Project({}, ended).beside(content))))


def lines(source: str, *others: str) -> list[int]:
    return [each.place.line for each in findings(source, *others)]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF112").code
    assert not RULE.pedantic
    (finding,) = findings(kind("HF112").wrong)
    assert finding.place.line == 7
    assert [each.place.line for each in finding.related] == [4, 10]
    assert lines(kind("HF112").right) == []


def test_a_class_with_a_close_method_is_another_kind() -> None:
    assert lines(kind("HF111").wrong) == []


METRICS = kind("HF112").wrong


@pytest.mark.parametrize(
    "more",
    [
        "    def pause(self):\n        self._task.cancel()\n",
        "    @property\n    def task(self):\n        return self._task\n",
        "    async def close(self):\n        pass\n",
        "    async def __aexit__(self, *exc):\n        pass\n",
    ],
)
def test_a_class_that_lets_other_code_end_its_task_is_not_reported(more: str) -> None:
    assert lines(METRICS + more) == []


def test_another_file_that_ends_it_keeps_it_silent() -> None:
    assert lines(METRICS, "metrics._task.cancel()") == []


def test_an_unknown_base_may_bring_a_close_method() -> None:
    assert lines(METRICS.replace("class Metrics:", "class Metrics(Service):")) == []


def test_a_task_that_ends_by_itself_needs_no_close() -> None:
    assert lines(METRICS.replace("while True:", "if True:")) == []
