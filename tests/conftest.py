"""What all tests share: a small heap, and each kind of loop on which the promises must hold."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest

from tests.support.stepping import loop_kinds

# This process may be measured. The programs that tests start are as their users start them, but
# for the ones that are given this.
MEASURED = {name: value for name, value in os.environ.items() if name == "COVERAGE_PROCESS_START"}


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("numprocesses", None):  # this one only starts the workers of xdist
        os.environ.pop("COVERAGE_PROCESS_START", None)


def _exit_without_coverage() -> None:
    os._exit = sys.modules[os.name]._exit


# coverage replaces os._exit, to save what was measured. A fork would save it, too, with all that
# its parent had measured, and one that is killed meanwhile leaves a file that cannot be read.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_exit_without_coverage)

# A shell without job control starts a background job with SIGINT ignored, and all its children too:
# tests that interrupt a program would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests write a module, run it, and write it anew within the second. Bytecode knows its source by
# the second and the size, so nobody keeps any of such a module: no program that a test starts,
# and not this process, once all tests have been imported.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def pytest_collection_finish() -> None:
    sys.dont_write_bytecode = True
    # The collector looks through what the tests create, and not through all modules as well: hundreds
    # of tests collect garbage, and took a third of their time for that.
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # the summary imports hypothesis, which looks for who refers to what


@pytest.fixture(autouse=True)
def own_interrupt_handler() -> Iterator[None]:
    """Take back the handler of a command that a test has run here: at its end it ignores Ctrl-C, and
    every program that a later test starts would do so, too."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if signal.getsignal(signal.SIGINT) is not before:
        signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module", autouse=True)
def _heap_of_the_module() -> None:
    """Freeze what the tests of other modules have left on the heap: many tests look through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def small_heap(_heap_of_the_module: None) -> None:
    """Freeze what the earlier tests of the module have left, too: for hundreds of collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def whole_heap() -> Iterator[None]:
    """Unfreeze the heap, for tests that find who refers to what from modules and classes on."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.fixture(params=loop_kinds())
def kind(request: pytest.FixtureRequest) -> str:
    """The stock loop, one with an eager task factory, uvloop."""
    value: str = request.param
    return value


@pytest.fixture(params=[*loop_kinds(), "wrapping"])
def any_kind(request: pytest.FixtureRequest) -> str:
    """The same, and a loop with a task factory that puts a coroutine around each."""
    value: str = request.param
    return value
