"""Run plans in this process or in several, with the same records in the same order."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import closing
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from handfast._explore.hosted.program import HostedProgram
from handfast._explore.loop.determinism import steady
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.plan import Invariant, Plan, Record, Settings
from handfast._explore.search.run import Program, run
from handfast._explore.search.watchdog import TooLong, Watchdog
from handfast._explore.verdict.error_text import error_text
from handfast._explorer_internals import fork_warns

# Real seconds for one run, at most and at least: a run whose time never ends must be cut.
_RUN_LIMIT, _LEAST_LIMIT = 60.0, 5.0
# Seconds. An idle worker ends at once, and the records of one that is busy are not needed.
_END_TIMEOUT = 0.2


class WorkersNeedImport(TypeError):
    """The program cannot be sent to another process, and this one cannot be forked."""

    def __init__(self, program: Any) -> None:
        super().__init__(
            f"{program!r} cannot be run by several workers here: make it a function at the top of "
            "a module, so that they can import it, or use workers=1"
        )


class Workers(Protocol):
    """Runs a batch of plans and gives the records in the order of the plans."""

    def run(self, plans: list[Plan], settings: Settings) -> Iterator[Record]: ...
    def close(self) -> None: ...


class InProcess:
    """Runs one plan after the other in this process."""

    def __init__(
        self, program: Program, invariant: Invariant, seconds: float | None = None
    ) -> None:
        self._program = program
        self._invariant = invariant
        # A hosted program limits its runs itself.
        self._limit = None if isinstance(program, HostedProgram) else _run_limit(seconds)
        self._watchdog: Watchdog | None = None

    def run(self, plans: list[Plan], settings: Settings) -> Iterator[Record]:
        for plan in plans:
            yield self._run(plan, settings)

    def _run(self, plan: Plan, settings: Settings) -> Record:
        if self._limit is None:
            return run(self._program, plan, settings, invariant=self._invariant)
        self._watchdog = self._watchdog or Watchdog(self._limit)
        record: Record | None = None
        try:
            with self._watchdog.limit():
                record = run(self._program, plan, settings, invariant=self._invariant)
        except TooLong:
            pass
        # The program may have caught it.
        if record is None or self._watchdog.fired:
            raise Uncontrolled(
                "a run",
                f"it has taken more than {self._limit:g} s of real time",
                "let a loop that repeats await something, such as asyncio.sleep(0)",
            )
        return record

    def close(self) -> None:
        if self._watchdog is not None:
            self._watchdog.close()
            self._watchdog = None


def _run_limit(seconds: float | None) -> float:
    """The real seconds for one run, if the whole search has so many."""
    return _RUN_LIMIT if seconds is None else max(_LEAST_LIMIT, min(_RUN_LIMIT, seconds))


class MultiProcess:
    """Worker processes. Worker i gets every i-th plan; the records are put in order again."""

    def __init__(self, program: Program, invariant: Invariant, count: int) -> None:
        # A fork has any program already, but where other threads run it may inherit a lock that
        # is never released.
        forks = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
        if not forks or fork_warns():
            sendable = _can_be_sent(program, invariant)
            if not (forks or sendable):
                raise WorkersNeedImport(program)
            # Threads that run no Python hold no lock of Python's, so a fork is safe enough.
            forks = not sendable
        context: Any = multiprocessing.get_context("fork" if forks else "spawn")
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            # A fork inherits our ends: it must close them, or no worker ever reads EOF.
            inherited = [*self._pipes, ours] if forks else []
            worker = context.Process(
                target=_work, args=(theirs, program, invariant, inherited), daemon=True
            )
            with warnings.catch_warnings():
                if forks:  # there is no other Python thread, as checked above
                    warnings.simplefilter("ignore", DeprecationWarning)
                worker.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(worker)

    def run(self, plans: list[Plan], settings: Settings) -> Iterator[Record]:
        count = len(self._pipes)
        # Every n-th plan, not blocks: plans close to each other take about the same time.
        shares = [plans[at::count] for at in range(count)]
        for pipe, share in zip(self._pipes, shares, strict=True):
            pipe.send((share, settings))
        return in_order([self._answer_of(at) for at in range(count)], len(plans))

    def _answer_of(self, at: int) -> Any:
        try:
            return self._pipes[at].recv()
        except (EOFError, OSError):
            worker = self._processes[at]
            worker.join()
            raise RuntimeError(
                f"worker {at} ended in the middle of a run (exit code {worker.exitcode}): the program "
                "ends its process; run it with workers=1 to see where"
            ) from None

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()  # the worker reads EOF and ends
        for worker in self._processes:
            worker.join(_END_TIMEOUT)
            if worker.is_alive():
                worker.kill()
                worker.join()


def _can_be_sent(program: Program, invariant: Invariant) -> bool:
    """Whether another process can import the program and the invariant."""
    try:
        pickle.dumps((program, invariant))
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _work(
    pipe: Connection, program: Program, invariant: Invariant, inherited: Sequence[Connection] = ()
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent process
    for other in inherited:
        other.close()
    with closing(InProcess(program, invariant)) as in_process, steady() as collect:
        while True:
            try:
                share, settings = pipe.recv()
                pipe.send(run_share(in_process, share, settings))
            except (EOFError, OSError):  # the parent has gone, maybe while we worked
                return
            collect(len(share))


def run_share(in_process: InProcess, share: list[Plan], settings: Settings) -> object:
    """The records of a share, or the error that ended it, in a form that can be pickled."""
    try:
        return list(in_process.run(share, settings))
    except BaseException as error:
        try:
            # Many exceptions can be pickled but not loaded, because of their constructor.
            pickle.loads(pickle.dumps(error))
        except Exception:
            return RuntimeError(error_text(error))
        return error


def in_order(answers: list[Any], count: int) -> Iterator[Record]:
    """The records of all shares in the order of the plans; raises what a worker has raised."""
    # All have been received: one that stayed in its pipe would be taken for the answer to the next share.
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return (answers[at % len(answers)][at // len(answers)] for at in range(count))


def make_workers(
    program: Program, invariant: Invariant, workers: int, seconds: float | None = None
) -> Workers:
    """This process for one worker, else that many processes."""
    if workers == 1:
        return InProcess(program, invariant, seconds)
    return MultiProcess(program, invariant, workers)
