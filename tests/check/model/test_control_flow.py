"""The control flow graph: no path of a run may be missing, and few others may be there."""

from __future__ import annotations

import ast

import pytest

from handfast._check.model.syntax.children import walk_here
from handfast._check.model.syntax.control_flow import Flow, Step, suspends
from handfast._check.model.syntax.module import Module
from handfast._check.source import parse


def caught_nothing(kind: ast.expr | None) -> tuple[str, ...]:
    return ()


class Graph:
    """The graph of `async def f`; steps have the names that they call: `a()` is step a."""

    def __init__(self, body: str) -> None:
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        source = parse("x.py", f"async def f():\n{lines}\n".encode())
        function = Module(source, "x").functions[0]
        self.flow = function.flow
        self.steps: dict[str, Step] = {"end": self.flow.end, "raised": self.flow.raised}
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                step = self.flow.of(node)
                if step is not None:
                    self.steps[node.func.id] = step

    def lead(self, start: str, goal: str, avoiding: str = "") -> bool:
        avoided = self.steps.get(avoiding)
        return self.flow.reaches(self.steps[start], self.steps[goal], [avoided])

    def always(self, start: str, wanted: str, also_on_errors: bool = False) -> bool:
        """Whether each path from `start` out of the function has the step that is wanted."""
        step = self.steps[wanted]
        ends = [self.flow.end, self.flow.raised] if also_on_errors else [self.flow.end]
        return not any(self.flow.reaches(self.steps[start], end, [step]) for end in ends)


@pytest.mark.parametrize(
    "body",
    [
        "a()\nb()",
        "a()\nif x:\n    b()",
        "a()\nif x:\n    pass\nelse:\n    b()",
        "if a():\n    c()\nelif x:\n    b()",
        "a()\nfor x in y:\n    b()",
        "for x in y:\n    pass\nelse:\n    a()\nb()",
        "while x:\n    b()\n    a()",
        "while True:\n    a()\n    if x:\n        break\nb()",
        "while x:\n    a()\n    continue\nb()",
        "a()\nwith x:\n    b()",
        "with x:\n    a()\nb()",
        "async with x:\n    a()\nb()",
        "async for x in y:\n    a()\nb()",
        "try:\n    a()\nexcept E:\n    b()",
        "try:\n    a()\nexcept E:\n    pass\nb()",
        "try:\n    a()\nexcept E:\n    pass\nelse:\n    b()",
        "try:\n    a()\nfinally:\n    b()",
        "try:\n    a()\n    raise E\nexcept* E:\n    b()",
        "try:\n    a()\n    return\nfinally:\n    b()",
        "while x:\n    try:\n        a()\n        break\n    finally:\n        b()",
        "while x:\n    try:\n        a()\n        continue\n    finally:\n        b()",
        "while x:\n    try:\n        a()\n        break\n    finally:\n        c()\nb()",
        "while b():\n    try:\n        a()\n        continue\n    finally:\n        c()",
        "match a():\n    case 1:\n        b()",
        "match x:\n    case 1 if a():\n        b()",
        "match a():\n    case 1:\n        pass\nb()",
        "with suppress(E):\n    a()\n    raise E\nb()",
        "with contextlib.suppress(E):\n    await a()\nb()",
        "try:\n    try:\n        a()\n        return\n    finally:\n        c()\nfinally:\n    b()",
        "a()\ndef g(): pass\nb()",
        "@a()\nclass C: pass\nb()",
        "a()\ndel x\nimport y\nglobal z\nassert x\nb()",
    ],
)
def test_b_can_follow_a(body: str) -> None:
    assert Graph(body).lead("a", "b")


@pytest.mark.parametrize(
    "body",
    [
        "b()\na()",
        "if x:\n    a()\nelse:\n    b()",
        "a()\nreturn\nb()",
        "a()\nraise E\nb()",
        "while True:\n    a()\nb()",
        "while 1:\n    a()\n    continue\n    b()",
        "while x:\n    a()\n    break\n    b()",
        "match x:\n    case 1:\n        a()\n    case 2:\n        b()",
        "if x:\n    a()\nelif y:\n    b()\nelse:\n    pass",
        "try:\n    pass\nexcept E:\n    a()\nexcept F:\n    b()",
        "a()\nlambda: b()",
        "async def g():\n    b()\na()",
    ],
)
def test_b_cannot_follow_a(body: str) -> None:
    graph = Graph(body)
    assert "b" not in graph.steps or not graph.lead("a", "b")


def test_a_finally_is_on_every_way_out() -> None:
    graph = Graph("try:\n    a()\n    if x:\n        return\n    await y\nfinally:\n    b()\nc()")
    assert graph.always("a", "b", also_on_errors=True)
    assert graph.lead("b", "c")
    assert graph.lead("b", "end")
    assert graph.lead("b", "raised")


def test_a_finally_that_no_return_goes_through_leads_on_and_not_out() -> None:
    graph = Graph("try:\n    a()\nfinally:\n    b()\nc()")
    assert graph.always("a", "c")
    assert not graph.always("a", "c", also_on_errors=True)


def test_a_break_leaves_its_own_loop_only() -> None:
    graph = Graph("while True:\n    while True:\n        a()\n        break\n    b()\nc()")
    assert graph.lead("a", "b")
    assert not graph.lead("a", "c")


def test_a_finally_around_a_loop_is_not_on_the_way_of_its_break() -> None:
    graph = Graph("try:\n    while True:\n        a()\n        break\n    c()\nfinally:\n    b()")
    assert graph.lead("a", "c", avoiding="b")


def test_an_exception_passes_handlers_of_another_kind_by() -> None:
    graph = Graph("try:\n    a()\nexcept E:\n    b()\nc()")
    assert not graph.always("a", "b", also_on_errors=True)
    assert graph.lead("a", "raised", avoiding="b")


@pytest.mark.parametrize("kind", ["", " BaseException", " (E, builtins.BaseException)"])
def test_nothing_passes_by_a_handler_that_takes_all(kind: str) -> None:
    graph = Graph(f"try:\n    a()\nexcept{kind}:\n    b()\n    raise")
    assert not graph.lead("a", "raised", avoiding="b")
    assert graph.lead("b", "raised")


def test_a_cancellation_goes_to_the_handler_that_takes_it() -> None:
    graph = Graph(
        "try:\n    await a()\nexcept ValueError:\n    b()\nexcept CancelledError:\n    c()\nd()"
    )
    (handler,) = graph.steps["a"].cancelling
    assert handler.after == [graph.steps["c"]]


def test_a_cancellation_that_nothing_catches_leaves_the_function_through_the_finally() -> None:
    graph = Graph("try:\n    await a()\nexcept ValueError:\n    b()\nfinally:\n    c()")
    (final,) = graph.steps["a"].cancelling
    assert graph.steps["c"] in final.after


def test_only_steps_that_suspend_can_be_cancelled() -> None:
    graph = Graph("a()\nawait b()")
    assert graph.steps["a"].cancelling == []
    assert graph.steps["b"].cancelling == [graph.flow.raised]
    assert list(graph.steps["b"].out()) == [graph.flow.end, graph.flow.raised, graph.flow.raised]


def test_suppress_of_cancellation_goes_on_behind_the_with() -> None:
    graph = Graph("with suppress(CancelledError):\n    await a()\nb()")
    (leaving,) = graph.steps["a"].cancelling
    assert graph.steps["b"] in leaving.after
    assert not leaving.cancelling
    assert (
        Graph("with suppress(ValueError):\n    await a()\nb()").steps["a"].cancelling[0].after == []
    )


def test_leaving_an_async_with_suspends() -> None:
    graph = Graph("async with x:\n    a()\nb()")
    assert graph.flow.suspends_between(graph.steps["a"], graph.steps["b"])
    graph = Graph("with x:\n    a()\nb()")
    assert not graph.flow.suspends_between(graph.steps["a"], graph.steps["b"])


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("c()", False),
        ("await c()", True),
        ("yield c()", True),
        ("async for x in y: pass", True),
        ("async with x: pass", True),
        ("[x async for x in y]", True),
        ("[await x for x in y]", True),
        ("lambda: (yield)", False),
        ("async def g(): await c()", False),
        ("if x:\n    await c()", True),
    ],
)
def test_suspension_between_two_steps_is_seen(between: str, expected: bool) -> None:
    graph = Graph(f"a()\n{between}\nb()")
    assert graph.flow.suspends_between(graph.steps["a"], graph.steps["b"]) is expected


def test_a_suspension_after_the_goal_does_not_count() -> None:
    graph = Graph("a()\nb()\nawait c()")
    assert not graph.flow.suspends_between(graph.steps["a"], graph.steps["b"])


def test_a_step_on_one_branch_is_not_on_every_path() -> None:
    assert (
        Graph("a()\nif x:\n    b()\nelse:\n    b()").always("a", "b") is False
    )  # two steps, and only one is wanted
    assert Graph("a()\nif x:\n    pass\nb()").always("a", "b")
    assert not Graph("a()\nif x:\n    return\nb()").always("a", "b")
    assert Graph("a()\nif x:\n    raise E\nb()").always("a", "b")


def test_a_long_chain_of_elifs_does_not_recurse() -> None:
    # Built by hand: the parser of the standard library gives up on such a chain before we do.
    head = last = ast.If(ast.Name("x", ast.Load()), [ast.Pass()], [])
    for _ in range(2000):
        each = ast.If(ast.Name("x", ast.Load()), [ast.Pass()], [])
        last.orelse = [each]
        last = each
    function = ast.FunctionDef("f", ast.arguments([], [], None, [], [], None, []), [head], [])
    assert len(Flow(function, caught_nothing).nodes) == 4002


def test_a_lambda_has_no_steps() -> None:
    node = ast.parse("lambda: a()", mode="eval").body
    assert isinstance(node, ast.Lambda)
    flow = Flow(node, caught_nothing)
    assert flow.nodes == []
    assert flow.of(node.body) is None


def test_stray_breaks_are_borne() -> None:
    function = ast.FunctionDef(
        "f", ast.arguments([], [], None, [], [], None, []), [ast.Break()], []
    )
    assert Flow(function, caught_nothing).nodes
    function.body = [ast.Continue()]
    assert Flow(function, caught_nothing).nodes


def test_walk_here_stays_out_of_inner_functions() -> None:
    tree = ast.parse("async def f():\n    def g():\n        x\n    y").body[0]
    names = {node.id for node in walk_here(tree) if isinstance(node, ast.Name)}
    assert names == {"y"}
    assert not suspends(ast.parse("x").body[0])
