"""HF112: a class starts a task that runs for ever and has no method that could end it.

Found: a task in an attribute, or in a container in one, whose body has a `while True` without a way out,
in a class that has no close method at all, where nobody cancels or joins it. Silent: where a base
class is not known; where the task gets into other hands; where any file cancels or joins an
attribute of this name.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.check.finding import Finding
from holdfast.check.model.module import Module
from holdfast.check.model.roles import close_methods
from holdfast.check.model.services import never_ended
from holdfast.check.rules.rule import Rule, found, related

__all__ = ["RULE", "check"]

_CODE = "HF112"


def check(module: Module) -> Iterator[Finding]:
    """Services in classes that cannot be closed."""
    for klass in module.classes.values():
        services = never_ended(klass)
        for service in services if services and not close_methods(klass) else ():
            yield found(
                _CODE,
                module,
                service.made.call,
                f"The task made here and kept in `{service.root}` runs for ever, and `{klass.name}` has "
                "no method that ends it: give it a close that cancels and awaits the task.",
                related(module, klass.node, "no close method in here"),
                *(
                    [related(module, service.loop, "its loop has no way out")]
                    if service.loop_module is module
                    else []
                ),
            )


RULE = Rule(_CODE, check)
