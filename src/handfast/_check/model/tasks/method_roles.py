"""What a method is for, by its name: to start its object, or to close it.

Names are all the evidence there is: nothing in the language says that `aclose` ends an object. A name
that is missing here costs a finding (HF111, HF303); one too many costs a false alarm, because the
rules hold a close method to more than others.
"""

from __future__ import annotations

import re

from handfast._check.model.operations.containers import done_callbacks
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.module import Class

# `close`, `_close`, `aclose`, `async_close`, `on_close`, `close_all`, `closed`.
_CLOSE = re.compile(
    r"_*(a|async_|do_|on_)?(close|stop|shutdown|shut_down|kill|terminate|disconnect|cleanup|clean_up"
    r"|teardown|tear_down|dispose|release|cancel|finish|exit|destroy|unload|join|drain|end|quit)"
    r"(_\w+|d)?"
)
_EXIT = {"__aexit__", "__exit__", "__del__"}
_START = re.compile(
    r"_*(a|async_|do_|on_)?(start|startup|start_up|setup|set_up|init|initialize|run|main|open|launch"
    r"|connect|begin|serve|boot|bootstrap|activate|load|added|attach)(_\w+|ed)?"
)
_ENTER = {"__aenter__", "__enter__", "__init__", "__post_init__"}


def is_close_name(name: str) -> bool:
    """Whether a method of this name ends something."""
    return name in _EXIT or _CLOSE.fullmatch(name) is not None


def is_start_name(name: str) -> bool:
    """Whether a method of this name is called once, to start its object."""
    return name in _ENTER or _START.fullmatch(name) is not None


def close_methods(klass: Class) -> list[Function]:
    """The methods of a class, inherited ones too, that end its objects: no done callbacks."""
    return [
        method
        for name, method in klass.all_methods.items()
        if is_close_name(name) and method not in done_callbacks(method.module)
    ]


def close_methods_in_file(klass: Class) -> list[Function]:
    """Those of them that are in the file of the class; no other file is read for the answer."""
    found: dict[str, Function] = {}
    for each in klass.classes_in_file:
        for name, method in each.methods.items():
            if is_close_name(name):
                found.setdefault(name, method)
    return list(found.values())
