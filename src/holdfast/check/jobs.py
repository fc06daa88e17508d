"""The files that have to be looked at anew, on several processes or on this one.

Workers share what the parent has read, take a few files at a time, and leave the Ctrl-C to the
parent. If one of them dies, the parent does what is left by itself.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.check.asking import Asking
from holdfast.check.one_file import check_file
from holdfast.check.result import Result

if TYPE_CHECKING:
    from holdfast.check.engine import File, Group
    from holdfast.check.rules.rule import Rule

__all__ = ["Work", "run"]

# Bytes of source that a worker takes at a time: at least so many that the hand-over pays, and not so
# many that one is still at work when all others are done. What lies in one part is parsed once.
_PART = 100_000
_LARGE_PART = 900_000
# Bytes of source whose trees are held at once; they take about two hundred times as much.
_HELD = 2_000_000


@dataclass(slots=True)
class Work:
    """What is the same for all files."""

    rules: tuple[Rule, ...]
    groups: dict[str, Group]


def run(work: Work, files: Sequence[File], jobs: int = 1) -> Iterator[list[Result]]:
    """The results, part by part, in any order."""
    # Files of one project side by side: they ask for the same modules.
    ordered = sorted(files, key=lambda file: (file.where.project, file.path))
    fair = sum(file.size for file in files) // (jobs * 4)
    parts = list(_parts(ordered, max(_PART, min(fair, _LARGE_PART))))
    todo = dict(enumerate(parts))
    if min(jobs, len(parts)) > 1:
        for number, results in _on_processes(work, parts, min(jobs, len(parts))):
            del todo[number]
            yield results
    if todo:
        worker = _Worker(work)
        with _no_collection():
            for part in todo.values():
                yield worker.check(part)


def _parts(files: Sequence[File], enough: int) -> Iterator[list[File]]:
    part: list[File] = []
    size = 0
    for file in files:
        part.append(file)
        size += file.size
        if size >= enough:
            yield part
            part, size = [], 0
    if part:
        yield part


# --- one process ---------------------------------------------------------------------------------


class _Worker:
    """Checks files, and forgets the trees of earlier ones from time to time."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._projects: dict[str, Asking] = {}
        self._held = 0

    def check(self, part: list[File]) -> list[Result]:
        return [self._check(file) for file in part]

    def _check(self, file: File) -> Result:
        self._held += file.size
        if self._held + sum(project.parsed for project in self._projects.values()) > _HELD:
            self._forget()
        group = self._work.groups[file.where.project]
        project = self._projects.get(file.where.project)
        if project is None:
            project = self._projects[file.where.project] = Asking(
                group.paths, group.ended, group.ended_by, group.quiet
            )
        return check_file(
            file.path,
            file.where.module,
            project,
            self._work.rules,
            file.settings.selection_for(file.path),
            group.keys,
            group.ended,
            file.content,
        )

    def _forget(self) -> None:
        self._held = 0
        for project in self._projects.values():
            project.forget()
        self._projects.clear()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Trees are many objects and no garbage: looking through them again and again takes a third of
    the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# --- several -------------------------------------------------------------------------------------

_here: _Worker | None = None


def _begin(work: Work) -> None:
    global _here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_go_with_the_parent, daemon=True).start()
    gc.disable()
    gc.freeze()  # what the parent has read is never looked through
    _here = _Worker(work)


def _go_with_the_parent() -> None:
    """A parent that is killed tells nobody; and a worker that was forked holds both ends of the queue
    on which it waits for more, so that it would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(number: int, part: list[File]) -> tuple[int, list[Result]]:
    assert _here is not None
    return number, _here.check(part)


def _on_processes(
    work: Work, parts: list[list[File]], jobs: int
) -> Iterator[tuple[int, list[Result]]]:
    """What could be done by others; what is missing, the caller has to do."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # A fork shares what was read; with other threads about, it could copy a lock that is held.
    may_fork = sys.platform == "linux" and threading.active_count() == 1
    try:
        pool = ProcessPoolExecutor(
            jobs, get_context("fork" if may_fork else "spawn"), _begin, (work,)
        )
        futures = [pool.submit(_do, *numbered) for numbered in enumerate(parts)]
    except (OSError, ImportError, NotImplementedError):
        return  # no processes to be had here
    try:
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        return
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
