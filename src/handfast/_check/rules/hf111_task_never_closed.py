"""HF111: an object keeps a task that runs until cancelled, and its close method does not end it.

Reported: a task in an attribute, in a container in one, or in a field of a record that one holds, whose
body has a `while True` with no exit, in a class that has a close method, where nothing cancels or joins
it, or only a method that starts the next one at once.
Not reported: where a base class is not known; where the close method signals or closes something that
the body reads; where other code gets hold of the task; where any file cancels or joins an attribute
of this name.
"""

from __future__ import annotations

from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.teardown import is_whole_close
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.endless import never_ended
from handfast._check.model.tasks.method_roles import close_methods
from handfast._check.rules.rule import CREATING, Rule, related_in, report

_CODE = "HF111"


def check(module: Module) -> Iterator[Finding]:
    """Endless tasks that the close method of their object does not end."""
    for klass in module.classes.values():
        for endless in never_ended(klass):
            # One that takes a key ends a part of the object. Without any it is HF112.
            close = next(filter(is_whole_close, close_methods(klass)), None)
            if close is None:
                continue
            yield report(
                _CODE,
                module,
                endless.creation.call,
                f"The task created here and kept in `{endless.root}` runs until it is cancelled, and "
                f"`{klass.name}.{close.name}` does not end it: cancel and await it there",
                related_in(module, close.module, close.node, "this does not end the task"),
                related_in(module, endless.loop_module, endless.loop, "its loop has no exit"),
            )


RULE = Rule(_CODE, check, needs=(CREATING,))
