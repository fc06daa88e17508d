"""Fixes of HF101: keep a task in a set until it is done."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from handfast.catalogue import kind
from handfast.check import check
from tests.check.fixes.fixing import fixed, suggestions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bot.py"


def test_the_fix_of_the_wrong_example(path: Path) -> None:
    assert (
        fixed(path, kind("HF101").wrong, "HF101")
        == """\
import asyncio


class Notifier:
    def __init__(self, send):
        self._background_tasks = set()
        self._send = send

    def notify(self, message):
        task = asyncio.create_task(self._send(message))
        self._background_tasks.add(task)
        task.add_done_callback(self._background_tasks.discard)

    async def close(self):
        pass
"""
    )


def test_the_fix_is_not_safe(path: Path) -> None:
    [found] = suggestions(path, kind("HF101").wrong, "HF101")
    assert found.fix is not None
    assert not found.fix.safe
    assert found.fix.message == "keep the task in `self._background_tasks` until it is done"


def test_a_function_uses_a_set_of_its_module(path: Path) -> None:
    source = '''\
"""A module."""

import asyncio as aio

# Says what
# it does.
@decorated
def go(work: object) -> None:
    if work:
        aio.create_task(work())  # now


def again(work: object) -> None:
    aio.ensure_future(work())
'''
    assert (
        fixed(path, source, "HF101")
        == '''\
"""A module."""

import asyncio as aio

_background_tasks: set[aio.Task[object]] = set()


# Says what
# it does.
@decorated
def go(work: object) -> None:
    if work:
        task = aio.create_task(work())  # now
        _background_tasks.add(task)
        task.add_done_callback(_background_tasks.discard)


def again(work: object) -> None:
    task = aio.ensure_future(work())
    _background_tasks.add(task)
    task.add_done_callback(_background_tasks.discard)
'''
    )


CLASS = """\
import asyncio


{head}
    def go(self, work):
        asyncio.create_task(work())
"""
MODULE_SET = "\n\n\n_background_tasks = set()\n\n\n"


@pytest.mark.parametrize(
    "head",
    [
        "class A:",
        "class A:\n    __slots__ = ('x',)\n\n    def __init__(self):\n        self.x = 1\n",
        "class A:\n    __slots__: tuple = ()\n\n    def __init__(self):\n        self.x = 1\n",
        "@dataclass\nclass A:\n    x: int = 0\n",
        "@frozen\nclass A:\n    def __init__(self):\n        self.x = 1\n",
        "class A(Unknown):\n    def __init__(self):\n        self.x = 1\n",
        "class A(metaclass=M):\n    def __init__(self):\n        self.x = 1\n",
        "class A:\n    def __setattr__(self, *_): ...\n    def __init__(self):\n        self.x = 1\n",
        "class A:\n    def __init__(self): self.x = 1\n",
        "class A:\n    @wrapped\n    def __init__(self):\n        self.x = 1\n",
        "class A:\n    @staticmethod\n    def __init__(self):\n        self.x = 1\n",
        "class A:\n    if True:\n        def __init__(self):\n            self.x = 1\n",
        "class A:\n    def __init__(self):\n        self._background_tasks = self._held_tasks = {}"
        "\n        self._tasks_under_way = {}\n",
    ],
)
def test_a_class_that_may_not_accept_a_new_attribute_uses_a_set_of_the_module(
    path: Path, head: str
) -> None:
    names = "_background_tasks" in head
    if names:
        assert suggestions(path, CLASS.format(head=head), "HF101") == []
        return
    after = fixed(path, CLASS.format(head=head), "HF101")
    assert after.startswith(f"import asyncio{MODULE_SET}")
    assert "\n        _background_tasks.add(task)\n" in after


@pytest.mark.parametrize(
    "subclass", ["pass", "def __init__(self):\n        super().__init__()", "x = 1"]
)
def test_the_set_of_a_base_class_if_subclasses_call_its_init(path: Path, subclass: str) -> None:
    head = "class A:\n    def __init__(self):\n        self.x = 1\n"
    source = CLASS.format(head=head) + f"\n\nclass B(A):\n    {subclass}\n"
    assert "self._background_tasks.add(task)" in fixed(path, source, "HF101")


def test_no_set_of_a_base_class_if_a_subclass_does_not_call_its_init(path: Path) -> None:
    head = "class A:\n    def __init__(self):\n        self.x = 1\n"
    subclass = "\n\nclass B(A):\n    def __init__(self):\n        self.x = 2\n"
    assert MODULE_SET in fixed(path, CLASS.format(head=head) + subclass, "HF101")


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        (
            '"""Doc."""  # said',
            '"""Doc."""  # said\n        self._background_tasks = set()\n',
        ),
        (
            '"""Doc."""\n        self.x = 1',
            '"""Doc."""\n        self._background_tasks = set()\n        self.x = 1\n',
        ),
        ("...", "self._background_tasks = set()\n        ...\n"),
        (
            "@cached\n        def f(): ...",
            "self._background_tasks = set()\n        @cached\n        def f(): ...\n",
        ),
        (
            "asyncio.create_task(other())",
            "self._background_tasks = set()\n        task = asyncio.create_task(other())\n"
            "        self._background_tasks.add(task)\n",
        ),
        (
            "self._background_tasks = {}",
            "self._held_tasks = set()\n        self._background_tasks = {}\n",
        ),
    ],
)
def test_the_set_is_created_first(path: Path, init: str, expected: str) -> None:
    head = f"class A:\n    def __init__(self):\n        {init}\n"
    assert expected in fixed(path, CLASS.format(head=head), "HF101")


@pytest.mark.parametrize(
    "there",
    ["self.jobs = set()", "self.jobs: set[asyncio.Task] = set()"],
)
def test_an_existing_set_of_tasks_is_used(path: Path, there: str) -> None:
    head = (
        f"class A:\n    def __init__(self):\n        {there}\n\n    def first(self, work):\n"
        "        task = asyncio.create_task(work())\n        self.jobs.add(task)\n"
        "        task.add_done_callback(self.jobs.discard)\n"
    )
    after = fixed(path, CLASS.format(head=head), "HF101")
    assert after.count("self.jobs.add(task)") == 2
    assert after.count("set()") == 1


@pytest.mark.parametrize("other", ["self.jobs = None", "self.jobs |= {1}"])
def test_an_attribute_that_is_not_always_a_set_is_not_used(path: Path, other: str) -> None:
    head = (
        "class A:\n    def __init__(self):\n        self.jobs = set()\n\n"
        f"    def close(self):\n        {other}\n\n    def first(self, work):\n"
        "        task = asyncio.create_task(work())\n        self.jobs.add(task)\n"
        "        task.add_done_callback(self.jobs.discard)\n"
    )
    assert "self._background_tasks.add(task)" in fixed(path, CLASS.format(head=head), "HF101")


FUNCTION = "import asyncio\n\n\ndef go(work, loop):\n    {body}\n"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("asyncio.create_task(work())", "task"),
        ("t = asyncio.create_task(work())", "t"),
        ("t: object = asyncio.create_task(work())", "t"),
        ("task = None\n    asyncio.create_task(work(task))", "background_task"),
        ("for task in work:\n        asyncio.create_task(task())", "background_task"),
        ("def task(): ...\n    asyncio.create_task(task())", "background_task"),
        ("import task\n    asyncio.create_task(task.work())", "background_task"),
        ("global task\n    asyncio.create_task(work())", "background_task"),
        ("f = lambda task: task\n    asyncio.create_task(work(f))", "background_task"),
        (
            "try:\n        loop()\n    except E as task:\n        loop.create_task(work())",
            "background_task",
        ),
        (
            "def inner():\n        asyncio.create_task(work())\n    loop(inner)",
            "task",
        ),
        (
            "match loop:\n        case background_task if task:\n"
            "            asyncio.create_task(work())",
            "held_task",
        ),
        ("asyncio.create_task(\n        work()\n    )", "task"),
        ("asyncio.create_task(work('ü'))  # ü", "task"),
        (
            "match loop:\n        case [*task]:\n            asyncio.create_task(work())",
            "background_task",
        ),
    ],
)
def test_the_task_gets_a_free_name(path: Path, body: str, name: str) -> None:
    after = fixed(path, FUNCTION.format(body=body), "HF101")
    assert f" _background_tasks.add({name})\n" in after
    assert f" {name}.add_done_callback(_background_tasks.discard)\n" in after


def test_two_tasks_of_one_function(path: Path) -> None:
    body = "asyncio.create_task(work())\n    asyncio.create_task(work())"
    after = fixed(path, FUNCTION.format(body=body), "HF101")
    assert after.count("task = asyncio") == 2
    assert after.count("_background_tasks.add(task)") == 2
    assert after.count("task.add_done_callback(_background_tasks.discard)") == 2
    assert after.count("set()") == 1


def test_a_task_with_a_callback_that_removes_it_is_only_added(path: Path) -> None:
    source = """\
import asyncio


class A:
    def __init__(self):
        self.tasks = set()

    def go(self, work):
        task = asyncio.create_task(work())
        task.add_done_callback(self.tasks.discard)
"""
    after = fixed(path, source, "HF101")
    assert after == source.replace(
        "        task.add", "        self.tasks.add(task)\n        task.add"
    )


def test_two_tasks_of_one_name_both_get_a_callback(path: Path) -> None:
    source = """\
import asyncio

tasks = set()


def go(work):
    task = asyncio.create_task(work())
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def again(work):
    if work:
        task = asyncio.create_task(work())
        task.add_done_callback(tasks.discard)
    else:
        task = asyncio.create_task(work.other())
"""
    after = fixed(path, source, "HF101")
    assert after.count("tasks.add(task)") == 3
    assert after.count("tasks.discard") == 4


def test_a_task_that_a_function_returns_is_kept_by_its_caller(path: Path) -> None:
    source = """\
import asyncio


def spawn(work):
    return asyncio.create_task(work())


def go(work):
    spawn(work)
"""
    assert "\n    task = spawn(work)\n    _background_tasks.add(task)\n" in fixed(
        path, source, "HF101"
    )


def test_an_existing_set_of_the_module_is_used(path: Path) -> None:
    source = """\
import asyncio

jobs = set()


def first(work):
    task = asyncio.create_task(work())
    jobs.add(task)
    task.add_done_callback(jobs.discard)


def go(work):
    asyncio.create_task(work())


def hidden(work, jobs):
    asyncio.create_task(work())
"""
    after = fixed(path, source, "HF101")
    assert after.count("jobs.add(task)") == 2
    assert after.count("_background_tasks.add(task)") == 1


@pytest.mark.parametrize(
    "body",
    [
        "loop.call_soon(lambda: asyncio.create_task(work()))",
        "[asyncio.create_task(work()) for _ in range(3)]",
        "asyncio.create_task(work()) if work else None",
        "if work: asyncio.create_task(work())",
        "x = 1; asyncio.create_task(work())",
        "asyncio.create_task(work()); x = 1",
        "if work: \\\n        asyncio.create_task(work())",
        "task = background_task = held_task = 1\n    work(task, background_task, held_task)\n"
        "    asyncio.create_task(work())",
    ],
)
def test_no_fix_if_no_edit_is_certain_to_be_right(path: Path, body: str) -> None:
    assert suggestions(path, FUNCTION.format(body=body), "HF101") == []


def test_no_fix_for_code_that_runs_on_import(path: Path) -> None:
    assert suggestions(path, "import asyncio\nasyncio.create_task(work())\n", "HF101") == []


def test_no_set_before_a_definition_that_shares_its_line(path: Path) -> None:
    source = "import asyncio; x = 1\nif x: import y\nelse:\n    def go(work):\n        {0}\n"
    text = source.format("asyncio.create_task(work())")
    assert "_background_tasks = set()\n\n\nif x: import y\n" in fixed(path, text, "HF101")
    shared = "import asyncio\nx = 1; f = [lambda: 0]\ndef go(w):\n    asyncio.create_task(w())\n"
    assert suggestions(path, shared, "HF101")
    inline = (
        "import asyncio\nx = 1\nif x:\n    def go(w):\n        asyncio.create_task(w())\nx; y\n"
    )
    assert suggestions(path, inline, "HF101")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_endings_are_those_of_the_file(path: Path, end: str) -> None:
    after = fixed(path, kind("HF101").wrong.replace("\n", end), "HF101")
    assert after.count(end) == after.count("\r") == len(after.splitlines())
    assert ("\n" in after) == (end == "\r\n")


def test_tabs_stay_tabs(path: Path) -> None:
    after = fixed(path, kind("HF101").wrong.replace("    ", "\t"), "HF101")
    assert "\n\t\tself._background_tasks.add(task)\n" in after


def test_no_annotation_if_asyncio_is_imported_later(path: Path) -> None:
    source = "def go(work: object) -> None:\n    import asyncio\n    asyncio.create_task(work())\n"
    assert fixed(path, source, "HF101").startswith("_background_tasks = set()\n\n\ndef go(")


def test_an_inner_function_with_a_self_of_its_own(path: Path) -> None:
    source = """\
import asyncio


class A:
    def __init__(self):
        self.x = 1

    def go(self, work):
        def inner(self):
            asyncio.create_task(work())

        def other():
            asyncio.create_task(work())

        return inner, other
"""
    after = fixed(path, source, "HF101")
    assert "\n            _background_tasks.add(task)\n" in after
    assert "\n            self._background_tasks.add(task)\n" in after


# --- the fixed code ------------------------------------------------------------------------------


def loaded(source: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(source, "bot.py", "exec"), names)
    return SimpleNamespace(**names)


async def held_until_done(start: Any, held: Any) -> None:
    gate = asyncio.Event()
    ended = []

    async def work(*_: object) -> None:
        await gate.wait()
        ended.append(True)

    start(work)
    gc.collect()
    await asyncio.sleep(0)
    assert len(held()) == 1
    gate.set()
    await asyncio.wait(held())
    await asyncio.sleep(0)
    assert (ended, held()) == ([True], set())


def test_the_fixed_class_keeps_its_task_until_it_is_done(path: Path) -> None:
    program = loaded(fixed(path, kind("HF101").wrong, "HF101"))

    async def run() -> None:
        notifiers: list[Any] = []

        def start(work: Any) -> None:
            notifiers.append(program.Notifier(work))
            notifiers[0].notify("hello")

        await held_until_done(start, lambda: notifiers[0]._background_tasks)

    asyncio.run(run())


@pytest.mark.parametrize("typed", ["", ": object"])
def test_the_fixed_function_keeps_its_task_until_it_is_done(path: Path, typed: str) -> None:
    source = f"import asyncio\n\n\ndef go(work{typed}):\n    asyncio.create_task(work())\n"
    program = loaded(fixed(path, source, "HF101"))
    asyncio.run(held_until_done(program.go, lambda: program._background_tasks))


def test_thousands_of_dropped_tasks_in_one_function(tmp_path: Path) -> None:
    # Attack 15: the names of the function were collected again for each of them.
    path = tmp_path / "x.py"
    path.write_text("import asyncio\nasync def f():\n" + "    asyncio.create_task(g())\n" * 5_000)
    found = check([str(path)], select=["HF101"]).findings
    assert len(found) == 5_000
    assert all(each.fix is not None for each in found)
