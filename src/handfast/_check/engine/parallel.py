"""Checks files, on several processes or on this one.

Workers share what the parent has read, take a few files at a time, and leave Ctrl-C to the parent.
If a worker dies, the parent checks the remaining files itself.
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
from multiprocessing.connection import Connection, wait

from handfast._check.engine.check_file import check_file
from handfast._check.engine.dependency_tracking import TrackedProject
from handfast._check.engine.file_facts import ProjectFiles, SourceFile
from handfast._check.report import FileResult
from handfast._check.rules.rule import Rule
from handfast._explorer_internals import fork_warns

# Bytes of source that a worker takes at a time: enough to pay for sending results, and few enough
# that no worker is still busy when all others are done. Modules of one part are parsed once.
_PART = 100_000
_LARGE_PART = 900_000
# Bytes of source whose trees are kept at once; a tree takes about 200 times the size of its source.
_KEPT = 2_000_000
# Of these, bytes of the modules that most other modules need.
_HUBS = 1_200_000


@dataclass(slots=True)
class Work:
    """Everything that a worker needs. It gets it once: parts are ranges of `files`."""

    rules: tuple[Rule, ...]
    projects: dict[str, ProjectFiles]
    files: list[SourceFile]


def run(work: Work, jobs: int = 1) -> Iterator[list[FileResult]]:
    """Yield the results, part by part, in any order."""
    # Files of one project next to each other: they need the same modules.
    work.files.sort(key=lambda file: (file.location.project, file.path))
    fair = sum(file.size for file in work.files) // (jobs * 4)
    parts = list(_parts(work.files, max(_PART, min(fair, _LARGE_PART))))
    todo = set(parts)
    if min(jobs, len(parts)) > 1:
        for part, results in _on_processes(work, parts, min(jobs, len(parts))):
            todo.remove(part)
            yield results
    if todo:
        worker = _Worker(work)
        with _no_collection():
            for part in sorted(todo):
                yield worker.check(part)


_Part = tuple[int, int]
"""The index of the first file, and of the first one after the last."""


def _parts(files: Sequence[SourceFile], enough: int) -> Iterator[_Part]:
    start = size = 0
    for end, file in enumerate(files, 1):
        size += file.size
        if size >= enough or end == len(files):
            yield start, end
            start, size = end, 0


# --- one process ---------------------------------------------------------------------------------


class _Worker:
    """Checks files, and drops the trees of earlier ones from time to time."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._projects: dict[str, TrackedProject] = {}
        self._kept = 0

    def check(self, part: _Part) -> list[FileResult]:
        return [self._check(file) for file in self._work.files[slice(*part)]]

    def _check(self, file: SourceFile) -> FileResult:
        name = file.location.project
        self._kept += file.size
        if self._kept + sum(project.parsed for project in self._projects.values()) > _KEPT:
            self._drop_trees(name)
        project = self._projects.get(name)
        if project is None:
            project = self._projects[name] = TrackedProject(self._work.projects[name])
        return check_file(file, project, self._work.rules)

    def _drop_trees(self, name: str) -> None:
        """Drop the trees of other projects, and most of those of this one."""
        self._kept = 0
        current = self._projects.pop(name, None)
        for project in self._projects.values():
            project.forget()
        self._projects.clear()
        if current is not None:
            current.forget(_HUBS)
            self._projects[name] = current


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turn the garbage collector off: trees are many objects and no garbage, and to scan them takes
    a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# --- several -------------------------------------------------------------------------------------

_worker: _Worker | None = None
"""The worker of this process, if it was started by `_on_processes`."""


def _start(work: Work, stop: Connection) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(stop,), daemon=True).start()
    gc.disable()
    gc.freeze()  # the collector never scans what the parent has read
    _worker = _Worker(work)


def _exit_with_parent(stop: Connection) -> None:
    """Exit when the parent dies or writes to `stop`. A forked worker has both ends of the queue on
    which it waits for more work, so it would not notice."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel, stop])  # no worker reads from `stop`, so that all of them see it
        os._exit(1)


def _check_part(part: _Part) -> tuple[_Part, list[FileResult]]:
    assert _worker is not None
    return part, _worker.check(part)


def _on_processes(
    work: Work, parts: list[_Part], jobs: int
) -> Iterator[tuple[_Part, list[FileResult]]]:
    """Yield the results of the parts that other processes could check; some may be missing."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # A fork shares what was read. With other threads it could copy a lock that one of them holds.
    alone = threading.active_count() == 1 and not fork_warns()
    may_fork = sys.platform == "linux" and alone
    context = get_context("fork" if may_fork else "spawn")
    reader, writer = context.Pipe(duplex=False)
    try:
        pool = ProcessPoolExecutor(jobs, context, _start, (work, reader))
        futures = [pool.submit(_check_part, part) for part in parts]
    except (OSError, ImportError, NotImplementedError):
        return  # this platform or sandbox has no processes
    try:
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        return
    except (KeyboardInterrupt, GeneratorExit):
        # The workers ignore Ctrl-C, and the rest of their parts may take minutes.
        writer.send_bytes(b"stop")
        raise
    except RuntimeError as error:
        # Ctrl-C inside `Condition.wait` of the standard library may leave a `with` that releases
        # a lock which is not held: this error then hides the interrupt.
        if isinstance(error.__context__, KeyboardInterrupt):
            writer.send_bytes(b"stop")
            raise error.__context__ from None
        raise
    finally:
        with _no_interrupt():
            pool.shutdown(wait=True, cancel_futures=True)
            reader.close()
            writer.close()


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Ignore a second Ctrl-C, which would leave threads of the pool with closed pipes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
