"""Which functions close and start objects, run as tasks, or run on threads."""

from __future__ import annotations

import pytest

from handfast._check.model.syntax.call_graph import reached_from
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.creation import task_bodies
from handfast._check.model.tasks.method_roles import close_methods, is_close_name, is_start_name
from handfast._check.model.threads.foreign_threads import foreign_threads, thread_targets
from handfast._check.source import parse


def module(source: str) -> Module:
    return Module(parse("x.py", source.encode()), "x")


@pytest.mark.parametrize(
    "name",
    [
        "close",
        "aclose",
        "_close",
        "async_close",
        "stop",
        "stop_all",
        "shutdown",
        "__aexit__",
        "disconnect",
        "cleanup",
        "tear_down",
        "kill",
        "cancel",
        "dispose",
        "__del__",
        "closed",
    ],
)
def test_a_name_that_ends_something(name: str) -> None:
    assert is_close_name(name)


@pytest.mark.parametrize("name", ["open", "enclose", "run", "start", "closest", "stopwatch"])
def test_a_name_that_ends_nothing(name: str) -> None:
    assert not is_close_name(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("start", True),
        ("_start_all", True),
        ("async_setup", True),
        ("__init__", True),
        ("__aenter__", True),
        ("connect", True),
        ("handle", False),
        ("restart", False),
        ("submit", False),
    ],
)
def test_a_name_that_sets_something_going(name: str, expected: bool) -> None:
    assert is_start_name(name) is expected


def test_inherited_close_methods_count() -> None:
    found = module("class A:\n    def close(self): pass\nclass B(A):\n    def run(self): pass\n")
    assert [each.qualname for each in close_methods(found.classes["B"])] == ["A.close"]


def test_what_a_function_reaches() -> None:
    source = """\
class A:
    def a(self): self.b(); plain()
    def b(self): self.a()
    def c(self): pass
def plain(): pass
"""
    found = module(source)
    names = {each.name for each in reached_from(found.classes["A"].methods["a"])}
    assert names == {"a", "b", "plain"}


def test_bodies_of_tasks() -> None:
    source = "import asyncio\nasync def f(): pass\nasync def g():\n    asyncio.create_task(f())\n"
    assert {each.name for each in task_bodies(module(source))} == {"f"}


@pytest.mark.parametrize(
    "start",
    [
        "threading.Thread(target=work)",
        "threading.Timer(1, work)",
        "asyncio.to_thread(work)",
        "loop.run_in_executor(None, work)",
        "executor.submit(work)",
        "self.pool.submit(work, 1)",
        "ThreadPoolExecutor().submit(work)",
        "loop.run_in_executor(None, functools.partial(work, 1))",
    ],
)
def test_what_runs_on_a_thread(start: str) -> None:
    source = (
        "import asyncio, threading, functools\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        f"def work(): pass\ndef go(self, loop, executor):\n    {start}\n"
    )
    found = module(source)
    assert {each.name for each in thread_targets(found)} == {"work"}
    assert {each.name for each in foreign_threads(found)} == {"work"}


@pytest.mark.parametrize(
    "start", ["scope.submit(work)", "work()", "threading.Thread(target=gone)", "threading.Thread()"]
)
def test_what_does_not_run_on_a_thread(start: str) -> None:
    source = f"import threading\ndef work(): pass\ndef go(scope):\n    {start}\n"
    assert not thread_targets(module(source))


def test_a_thread_with_a_loop_of_its_own_is_at_home() -> None:
    source = """\
import asyncio, threading
def work():
    asyncio.run(main())
threading.Thread(target=work)
"""
    found = module(source)
    assert thread_targets(found)
    assert not foreign_threads(found)
