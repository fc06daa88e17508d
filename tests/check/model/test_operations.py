"""Operations of functions on the tasks that they hold: the many forms of a join."""

from __future__ import annotations

from pathlib import Path

import pytest

from handfast._check.model.operations.operations import operations
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Module
from handfast._check.model.syntax.project import Project
from handfast._check.source import parse


def module(source: str, project: Project | None = None) -> Module:
    return Module(parse("x.py", source.encode()), "x", project)


def function(source: str, name: str, project: Project | None = None) -> Function:
    return next(each for each in module(source, project).functions if each.name == name)


def done(body: str, more: str = "", project: Project | None = None) -> set[tuple[str, str]]:
    """What `close` does to `self.t` and its like, without plain reads."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    source = f"import asyncio\nclass A:\n    async def close(self, given):\n{lines}\n{more}"
    found = operations(function(source, "close", project))
    return {(each.kind, each.root) for each in found if each.kind not in ("read", "use")}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.t.cancel()", "cancel"),
        ("t = self.t\nt.cancel()", "cancel"),
        ("t, self.u = self.t, None\nt.cancel()", "cancel"),
        ("for t in self.t: t.cancel()", "cancel"),
        ("for t in list(self.t.values()): t.cancel()", "cancel"),
        ("self.t['x'].cancel()", "cancel"),
        ("self.t.pop('x').cancel()", "cancel"),
        ("[t.cancel() for t in self.t]", "cancel"),
        ("getattr(self, 't').cancel()", "cancel"),
        ("d, pending = await asyncio.wait(self.x)\nself.t.cancel()", "cancel"),
        ("await self.t", "join"),
        ("t = self.t\nawait t", "join"),
        ("await asyncio.wait({self.t})", "join"),
        ("await asyncio.wait([self.t], timeout=1)", "join"),
        ("await asyncio.gather(*self.t, return_exceptions=True)", "join"),
        ("await asyncio.gather(self.x, self.t)", "join"),
        ("await asyncio.wait_for(self.t, 1)", "join"),
        ("await asyncio.wait_for(asyncio.shield(self.t), 1)", "join"),
        ("await asyncio.wait(fs=self.t)", "join"),
        ("await asyncio.gather(*(end(t) for t in self.t))", "join"),
        ("await asyncio.gather(*[t for t in self.t if t])", "join"),
        ("await asyncio.wait({t for t in self.t})", "join"),
        ("for t in asyncio.as_completed(self.t): await t", "join"),
        ("async for t in asyncio.as_completed(self.t): pass", "join"),
        ("[await t for t in self.t]", "join"),
        ("[x async for x in self.t]", "join"),
        ("self.loop.run_until_complete(self.t)", "join"),
        ("asyncio.run(self.t)", "join"),
        ("await self.t.wait()", "join"),
        ("await self.t.join()", "join"),
        ("with suppress(asyncio.CancelledError):\n    await self.t", "join"),
        ("await unknown(self.t)", "join"),
        ("await (await self.t)", "join"),
        ("self.t = None", "clear"),
        ("self.t: T = None", "clear"),
        ("self.t = {}", "clear"),
        ("self.t = []", "clear"),
        ("self.t = ()", "clear"),
        ("self.t = set()", "clear"),
        ("x, self.t = self.u, None", "clear"),
        ("del self.t", "clear"),
        ("self.t.clear()", "clear"),
        ("self.t = make()", "put"),
        ("self.t['x'] = make()", "put"),
        ("self.t.add(make())", "put"),
        ("self.t, self.u = make()", "put"),
        ("self.t.pop('x')", "take"),
        ("self.t.discard(given)", "take"),
        ("del self.t['x']", "take"),
        ("self.t.close()", "close"),
        ("await self.t.aclose()", "close"),
        ("self.t.set()", "signal"),
        ("await self.t.put(None)", "signal"),
    ],
)
def test_operations(body: str, expected: str) -> None:
    assert (expected, "self.t") in done(body)


@pytest.mark.parametrize(
    "body",
    ["self.t.done()", "x = self.t", "self.t", "log(self.t)", "given.t = None", "x: T", "del x"],
)
def test_a_look_does_nothing(body: str) -> None:
    assert not {kind for kind, root in done(body) if root == "self.t"}


def test_reads_and_uses_are_distinguished() -> None:
    found = operations(
        function(
            "class A:\n    def f(self):\n        self.a\n        self.b.c\n        self.d[0]\n", "f"
        )
    )
    assert [(each.kind, each.root) for each in found] == [
        ("read", "self.a"),
        ("use", "self.b"),
        ("use", "self.d"),
    ]
    assert all(each.step is not None for each in found)


@pytest.mark.parametrize(
    "more",
    [
        "    async def end(self, task):\n        task.cancel()\n        await task\n",
        "    async def end(self, *tasks):\n        for t in tasks: t.cancel()\n"
        "        await asyncio.gather(*tasks)\n",
        "    async def end(self, task):\n        await self.deeper(task)\n"
        "    async def deeper(self, t):\n        t.cancel()\n        await asyncio.wait([t])\n",
        "    @staticmethod\n    async def end(task):\n        task.cancel()\n        await task\n",
        "    @classmethod\n    async def end(cls, task):\n        task.cancel()\n        await task\n",
    ],
)
def test_a_method_that_ends_its_parameter_ends_what_it_is_given(more: str) -> None:
    assert {("cancel", "self.t"), ("join", "self.t")} <= done("await self.end(self.t)", more)


def test_a_function_of_the_module_that_ends_its_parameter_is_seen() -> None:
    more = "async def end(task, *, other):\n    task.cancel()\n    await other\n"
    found = done("await end(self.t, other=self.u, **given)", more)
    assert {("cancel", "self.t"), ("join", "self.u")} <= found
    assert ("cancel", "self.u") not in found


def test_a_function_of_another_file_that_ends_its_parameter_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "ending.py"
    path.write_text("def end(task):\n    task.cancel()\n")
    project = Project({"pkg.ending": str(path)})
    body = "from pkg.ending import end\nend(self.t)"
    assert ("cancel", "self.t") in done(body, project=project)
    assert ("cancel", "self.t") not in done(
        "from pkg.gone import end\nend(self.t)", project=project
    )


def test_an_unknown_function_is_taken_at_its_name() -> None:
    assert ("cancel", "self.t") in done("cancel_all(self.t)")
    assert ("cancel", "self.t") in done("x.safe_cancel(task=self.t)")
    assert ("cancel", "self.t") not in done("x.register(self.t)")


def test_a_known_function_is_not_taken_at_its_name() -> None:
    assert ("cancel", "self.t") not in done(
        "cancel_all(self.t)", "def cancel_all(x):\n    print(x)\n"
    )


def test_functions_that_call_each_other_are_followed_to_a_limit() -> None:
    source = """\
async def a(x):
    await b(x)
async def b(x):
    await a(x)
    x.cancel()
"""
    found = operations(function(source, "a"))
    assert {(each.kind, each.root) for each in found} == {("cancel", "x"), ("join", "x")}
    assert operations(function("def f(x):\n    f(x)\n    print(x, 1)\n", "f")) == ()


def test_more_arguments_than_parameters_are_ignored() -> None:
    assert ("cancel", "self.t") not in done("end(1, self.t)", "def end(x):\n    x.cancel()\n")
