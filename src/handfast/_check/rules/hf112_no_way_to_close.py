"""HF112: a class starts a task that runs until cancelled and has no method that could end it.

Reported: a task in an attribute, in a container in one, or in a field of a record that one holds, whose
body has a `while True` with no exit, in a class that has no close method at all, where nothing cancels
or joins it, or only a method that starts the next one at once.
Not reported: where a base class is not known; where other code gets hold of the task; where any file
cancels or joins an attribute of this name.
"""

from __future__ import annotations

from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.endless import never_ended
from handfast._check.model.tasks.method_roles import close_methods
from handfast._check.rules.rule import CREATING, Rule, related, related_in, report

_CODE = "HF112"


def check(module: Module) -> Iterator[Finding]:
    """Endless tasks of classes that cannot be closed."""
    for klass in module.classes.values():
        tasks = never_ended(klass)
        for endless in tasks if tasks and not close_methods(klass) else ():
            yield report(
                _CODE,
                module,
                endless.creation.call,
                f"The task created here and kept in `{endless.root}` runs until it is cancelled, and "
                f"`{klass.name}` has no method that ends it: add a close method that cancels and awaits "
                "the task",
                related(module, klass.node, "this class has no close method"),
                related_in(module, endless.loop_module, endless.loop, "its loop has no exit"),
            )


RULE = Rule(_CODE, check, needs=(CREATING,))
