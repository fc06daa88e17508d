"""How an example is judged: a probe drives it, and says which symptom it saw, or None.

The same probe judges the wrong and the right example of a kind, so neither can cheat. What an
example leaves behind is taken down here, and every warning and complaint is kept as evidence.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import linecache
import sys
import threading
import types
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.catalogue.probe_loop import ProbeLoop

__all__ = ["PROBES", "Bench", "Evidence", "as_program", "examine", "others", "probe", "steps"]

Probe = Callable[["Bench", Any], "str | Awaitable[str | None] | None"]

PROBES: dict[str, functools.partial[Evidence]] = {}
"""For each code what examines a source of that kind, given a label for tracebacks."""


@dataclass
class Evidence:
    """What was seen while one example ran."""

    symptom: str | None = None
    complaints: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass
class Bench:
    """Where an example runs: its loop, and the warnings that it has caused so far."""

    loop: ProbeLoop
    warnings: list[warnings.WarningMessage]

    def run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)


def probe(
    code: str, *, outside: bool = False, missing: str | None = None
) -> Callable[[Probe], Probe]:
    """Register the probe of a kind.

    `outside`: threads or child processes have a part in it. `missing`: what the probe needs and
    this platform does not have, if anything.
    """

    def register(function: Probe) -> Probe:
        assert code not in PROBES, f"{code} has two probes"
        PROBES[code] = functools.partial(_examine, function, outside, missing)
        return function

    return register


def examine(code: str, source: str, label: str) -> Evidence:
    """Run the probe of this kind on a source."""
    return PROBES[code](source, label)


def as_program(
    code: str, source: str, label: str
) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """The probe and its example as a program that fails if there is a symptom; None if the probe
    drives the loop itself, or reaches outside."""
    function, outside, _ = PROBES[code].args
    if (
        outside
        or not inspect.iscoroutinefunction(function)
        or "bench." in inspect.getsource(function)
    ):
        return None

    async def program() -> None:
        symptom = await function(None, _load(source, label))
        assert symptom is None, symptom

    return program


def others() -> set[asyncio.Task[Any]]:
    """Every pending task but the one that asks."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def steps(count: int = 20) -> None:
    """Let everything that is ready run, for so many turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def _examine(
    function: Probe, outside: bool, missing: str | None, source: str, label: str
) -> Evidence:
    if missing is not None:
        pytest.skip(f"the probe needs {missing}")
    evidence = Evidence()
    with _everything_heard(evidence) as heard:
        loop = ProbeLoop(outside=outside)
        snippet = _load(source, label)
        bench = Bench(loop, heard)
        try:
            verdict = function(bench, snippet)
            evidence.symptom = bench.run(verdict) if inspect.isawaitable(verdict) else verdict
        finally:
            evidence.left = [repr(task) for task in asyncio.all_tasks(loop)]
            snippet.__dict__.clear()
            _take_down(loop)
        evidence.complaints += loop.complaints
    return evidence


def _load(source: str, label: str) -> types.ModuleType:
    """The example as a module, with its source where tracebacks can find it."""
    filename = f"<{label}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    module = types.ModuleType(label)
    exec(compile(source, filename, "exec"), module.__dict__)
    return module


def _take_down(loop: ProbeLoop) -> None:
    """End whatever the example has left on the loop, however it resists."""
    for _ in range(20):
        tasks = asyncio.all_tasks(loop)
        if not tasks:
            break
        for task in tasks:
            task.cancel()
        loop.run_until_complete(steps())
    assert not asyncio.all_tasks(loop), "an example that cannot be taken down"
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    gc.collect()
    loop.run_until_complete(steps())
    loop.close()


@contextlib.contextmanager
def _everything_heard(evidence: Evidence) -> Iterator[list[warnings.WarningMessage]]:
    """Turn warnings, errors in finalizers and in threads into evidence, not into noise."""

    def unraisable(event: Any) -> None:
        evidence.complaints.append(f"unraisable {event.exc_value!r}")

    def in_thread(event: Any) -> None:
        evidence.complaints.append(f"thread died of {event.exc_value!r}")

    before = sys.unraisablehook, threading.excepthook
    sys.unraisablehook, threading.excepthook = unraisable, in_thread
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            yield heard
            gc.collect()
            evidence.complaints += [f"{w.category.__name__}: {w.message}" for w in heard]
    finally:
        sys.unraisablehook, threading.excepthook = before
