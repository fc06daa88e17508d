"""HF301: a close method clears an attribute that a task of the same object still uses.

Reported: a close method sets an attribute to None (or deletes it) before a task of the object has been
joined, ends that task afterwards, and the task uses the attribute without a check since its last
`await`. If the method can suspend between the clearing and the cancel, any use in the task counts; if
not, only a use in its `except` or `finally` does, because nothing else of the task runs after that.
Not reported: where the method ends no task, and where the task itself runs the method.
"""

from __future__ import annotations

from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.effects import Effect, effects
from handfast._check.model.operations.teardown import TaskTeardown, teardown_of
from handfast._check.model.syntax.call_graph import runs
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.tasks.method_roles import close_methods_in_file
from handfast._check.model.tasks.owned import Owned, Use, bodies_in, own_tasks, unguarded_uses
from handfast._check.rules.rule import OWNING, Rule, line_of, related, report


def check(module: Module) -> Iterator[Finding]:
    seen: set[tuple[object, str]] = set()
    for klass in module.classes.values():
        for owned in own_tasks(klass):
            for method in close_methods_in_file(klass):
                if _runs_itself(klass, owned, method):
                    continue
                for finding in _evaluate(klass, owned, method):
                    # One statement may clear several attributes.
                    if (finding.place, finding.message) not in seen:
                        seen.add((finding.place, finding.message))
                        yield finding


def _runs_itself(klass: Class, owned: Owned, method: Function) -> bool:
    return any(
        function is method
        for creation in owned.creations
        for body in bodies_in(klass, creation)
        for function, _ in runs(body, klass)
    )


def _evaluate(klass: Class, owned: Owned, method: Function) -> Iterator[Finding]:
    teardown = teardown_of(klass, method, owned.root)
    if not teardown.cancels and not teardown.joins:
        return
    for clear in effects(method, klass):
        if clear.kind == "clear" and clear.root != owned.root and clear.operation.sets_none:
            if teardown.may_run_at(clear.node):
                use = _use_after(klass, owned, teardown, clear)
                if use is not None:
                    yield _finding(method, owned, clear, use)


def _use_after(klass: Class, owned: Owned, teardown: TaskTeardown, clear: Effect) -> Use | None:
    """The first use in the task that can meet the cleared attribute."""
    in_body, in_cleanup = _runs_after(teardown, clear)
    for creation in owned.creations:
        for use in unguarded_uses(klass, creation, clear.root):
            if in_body or (in_cleanup and use.in_cleanup):
                return use
    return None


def _runs_after(teardown: TaskTeardown, clear: Effect) -> tuple[bool, bool]:
    """Whether the body of the task can run after the clearing, and whether its cleanup can."""
    flow, step = teardown.function.flow, clear.step
    joins = {each.step for each in teardown.joins}
    cancels = {each.step for each in teardown.cancels}
    body = any(flow.suspends_between(step, cancel, joins) for cancel in cancels) or any(
        # Joined without a cancel: it runs until it ends by itself.
        join not in cancels
        and not any(flow.reaches(cancel, join) for cancel in cancels)
        and flow.reaches(step, join, cancels)
        for join in joins
    )
    cleanup = any(
        # After the cancel, the cleanup runs as soon as the method suspends.
        flow.reaches(step, cancel)
        or (flow.reaches(cancel, step) and not flow.suspends_between(cancel, step))
        for cancel in cancels
    )
    return body, cleanup


def _finding(method: Function, owned: Owned, clear: Effect, use: Use) -> Finding:
    creation = owned.creations[0]
    part = "cleanup" if use.in_cleanup else "body"
    return report(
        "HF301",
        clear.operation.function.module,
        clear.operation.node,
        f"`{method.qualname}` clears `{clear.root}` before the task in `{owned.root}` is cancelled and "
        f"awaited, and the task's {part} still uses it (line {line_of(use.node)}): cancel and await the "
        "task first",
        related(use.function.module, use.node, f"the {part} of the task uses it here"),
        related(creation.function.module, creation.call, "the task is created here"),
    )


RULE = Rule("HF301", check, needs=(OWNING, "None|del "))
