"""HF111: an owner stores a task that runs for ever, and its close method does not end it.

Found: a task in an attribute, or in a container in one, whose body has a `while True` without a way out,
in a class that has a close method, where nobody cancels or joins it. Silent: where a base class is
not known; where the close method gives a sign to, or closes, something that the body looks at;
where the task gets into other hands; where any file cancels or joins an attribute of this name.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.model.roles import close_methods
from holdfast.check.model.services import never_ended
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE", "check"]

_CODE = "HF111"


def check(module: Module) -> Iterator[Finding]:
    """Services that outlive the close of their owner."""
    for klass in module.classes.values():
        for service in never_ended(klass):
            close = next(iter(close_methods(klass)), None)
            if close is None:
                continue  # that is another kind of bug
            yield found(
                _CODE,
                module,
                service.made.call,
                f"The task made here and kept in `{service.root}` runs for ever, and "
                f"`{klass.name}.{close.name}` neither cancels nor joins it.",
                *(
                    [related(module, close.node, "closed here, without the task")]
                    if close.module is module
                    else []
                ),
                *(
                    [related(module, service.loop, "its loop has no way out")]
                    if service.loop_module is module
                    else []
                ),
            )


RULE = Rule(_CODE, check)
