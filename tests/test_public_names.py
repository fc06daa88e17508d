"""Public names show the public module, can be pickled, and are loaded when they are first used."""

from __future__ import annotations

import pickle
import traceback
from importlib import import_module
from pkgutil import iter_modules
from types import FunctionType, ModuleType

import pytest

import handfast
import handfast.check
import handfast.explore
import handfast.leaks
import handfast.scripted
import handfast.types
from handfast import bridges

MODULES = (
    handfast,
    handfast.check,
    handfast.explore,
    handfast.leaks,
    handfast.scripted,
    handfast.types,
)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_class_and_function_shows_its_public_module(module: ModuleType) -> None:
    items = {name: getattr(module, name) for name in getattr(module, "__all__")}  # noqa: B009
    shown = {
        name: item.__module__
        for name, item in items.items()
        if isinstance(item, type | FunctionType)
    }
    assert shown
    assert shown == dict.fromkeys(shown, module.__name__)


def test_every_public_module_is_a_public_name() -> None:
    """So `import handfast` is enough for `handfast.watch.serve()`."""
    modules = {each.name for each in iter_modules(handfast.__path__) if each.name[0] != "_"}
    assert modules - {"cli", "pytest_plugin"} <= {*handfast.__all__}


@pytest.mark.parametrize("bridge", [module.name for module in iter_modules(bridges.__path__)])
def test_a_bridge_shows_no_private_module(bridge: str) -> None:
    module = import_module(f"handfast.bridges.{bridge}")
    items = [getattr(module, name) for name in module.__all__]
    shown = {item.__module__ for item in items if isinstance(item, type | FunctionType)}
    assert shown
    assert shown <= {module.__name__, "handfast.types"}


def test_a_traceback_names_the_public_class() -> None:
    error = handfast.errors.ScopeClosed("spawn refused")
    assert traceback.format_exception_only(error) == [
        "handfast.errors.ScopeClosed: spawn refused\n"
    ]


def test_public_values_and_functions_can_be_pickled() -> None:
    report = handfast.types.CloseReport("bot", finished=(handfast.types.TaskEnd("save", None),))
    assert pickle.loads(pickle.dumps(report)) == report
    assert pickle.loads(pickle.dumps(handfast.run)) is handfast.run
    assert str(pickle.loads(pickle.dumps(handfast.errors.KeyBusy("busy")))) == "busy"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_an_unknown_name_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute"):
        getattr(module, "no_such_name")  # noqa: B009
