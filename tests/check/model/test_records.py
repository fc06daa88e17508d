"""Tasks in fields of records: which classes are records, and which attributes hold them."""

from __future__ import annotations

import pytest

from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.records import recorded_tasks
from handfast._check.source import parse

HEAD = """\
import asyncio
from dataclasses import dataclass
from typing import NamedTuple
from elsewhere import Base
@dataclass
class Job:
    key: str
    task: asyncio.Task | None = None
@dataclass(slots=True)
class Slotted:
    task: asyncio.Task
class Named(NamedTuple):
    task: asyncio.Task
class Plain:
    def __init__(self, task, key=None):
        self.work = task
        self.key = key
class Twice:
    def __init__(self, task):
        self.task = task
        register(task)
class Derived(Base):
    def __init__(self, task):
        self.task = task
class Other:
    task: asyncio.Task
class Owner:
    def start(self, key, given):
        {body}
    async def run(self):
        pass
"""


def held(body: str) -> list[tuple[str, str]]:
    source = HEAD.format(body=body.replace("TASK", "asyncio.create_task(self.run())"))
    module = Module(parse("x.py", source.encode()), "x")
    return [(each.root, each.field) for each in recorded_tasks(module.classes["Owner"])]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.jobs[key] = Job(key, TASK)", ("self.jobs", "task")),
        ("self.jobs[key] = Job(key, task=TASK)", ("self.jobs", "task")),
        ("self.jobs.append(Slotted(TASK))", ("self.jobs", "task")),
        ("self.job = Named(TASK)", ("self.job", "task")),
        ("self.job = Plain(TASK)", ("self.job", "work")),
        ("self.job = Plain(key=key, task=TASK)", ("self.job", "work")),
        ("task = TASK; self.job = Plain(task)", ("self.job", "work")),
        ("job = Plain(TASK); self.jobs[key] = job", ("self.jobs", "work")),
        ("job = Job(key); job.task = TASK; self.jobs[key] = job", ("self.jobs", "task")),
        ("job = Job(key); self.jobs[key] = job; job.task = TASK", ("self.jobs", "task")),
    ],
)
def test_a_task_in_a_field_of_a_record_is_held_by_its_owner(
    body: str, expected: tuple[str, str]
) -> None:
    assert held(body) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "self.jobs[key] = TASK",
        "return Job(key, TASK)",
        "job = Job(key, TASK); self.jobs[key] = job; return job",
        "task = TASK; self.tasks.add(task); self.job = Plain(task)",
        "self.other.job = Plain(TASK)",
        "jobs = [Plain(TASK)]",
        "self.job = given(TASK)",
        "self.job = Unknown(TASK)",
        "self.job = Twice(TASK)",
        "self.job = Derived(TASK)",
        "self.job = Other(TASK)",
        "self.job = Plain(wrap(TASK))",
        "job = given; job.task = TASK; self.jobs[key] = job",
        "given.job.task = TASK",
    ],
)
def test_a_task_that_may_have_another_holder_is_not_recorded(body: str) -> None:
    assert held(body) == []
