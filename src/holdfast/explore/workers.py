"""Who runs the plans: this process, or several, with the same records in the same order."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from holdfast.explore.plan import Plan, Record, Settings
from holdfast.explore.run import Program, run
from holdfast.explore.steady import steady

__all__ = ["Alone", "Crew", "Invariant", "WorkersNeedImport", "answered", "crew", "in_order"]

Invariant = Callable[[], object] | None
# A worker that waits goes at once; one in the middle of a share has nothing that is still wanted.
_LAST_WORDS = 0.2


class WorkersNeedImport(TypeError):
    """The program cannot be sent to another process, and this one cannot be forked."""

    def __init__(self, program: Any) -> None:
        super().__init__(
            f"{program!r} cannot be run by several workers here: make it a function at the top of "
            "a module, so that they can import it, or use workers=1"
        )


class Crew(Protocol):
    """Runs a batch of plans and gives the records in the order of the plans."""

    def run(self, plans: list[Plan], settings: Settings) -> Iterator[Record]: ...
    def close(self) -> None: ...


class Alone:
    """This process does it all, one plan after the other."""

    def __init__(self, program: Program, invariant: Invariant) -> None:
        self._program = program
        self._invariant = invariant

    def run(self, plans: list[Plan], settings: Settings) -> Iterator[Record]:
        for plan in plans:
            yield run(self._program, plan, settings, invariant=self._invariant)

    def close(self) -> None:
        """Nothing was started."""


class Several:
    """Worker processes. Worker i gets every i-th plan; the records are put in order again."""

    def __init__(self, program: Program, invariant: Invariant, count: int) -> None:
        # A fork takes the program along whatever it is, but with other threads about it may
        # inherit a lock that nobody will ever release.
        forks = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
        if not forks:
            try:
                pickle.dumps((program, invariant))
            except (pickle.PicklingError, AttributeError, TypeError):
                raise WorkersNeedImport(program) from None
        context: Any = multiprocessing.get_context("fork" if forks else "spawn")
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        for _ in range(count):
            ours, theirs = context.Pipe()
            # A fork has our ends as well: as long as it holds one, nobody reads the end of it.
            held = [*self._pipes, ours] if forks else []
            worker = context.Process(
                target=_work, args=(theirs, program, invariant, held), daemon=True
            )
            worker.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(worker)

    def run(self, plans: list[Plan], settings: Settings) -> Iterator[Record]:
        count = len(self._pipes)
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
            pipe.close()  # the worker reads the end and goes
        for worker in self._processes:
            worker.join(_LAST_WORDS)
            if worker.is_alive():
                worker.kill()
                worker.join()


def _work(
    pipe: Connection, program: Program, invariant: Invariant, held: Sequence[Connection] = ()
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asked
    for other in held:
        other.close()
    alone = Alone(program, invariant)
    with steady() as sweep:
        while True:
            try:
                share, settings = pipe.recv()
                pipe.send(answered(alone, share, settings))
            except (EOFError, OSError):  # whoever asked has gone, maybe while we worked
                return
            sweep(len(share))


def answered(alone: Alone, share: list[Plan], settings: Settings) -> object:
    """The records of a share, or the error that ended it, in a form that can travel."""
    try:
        return list(alone.run(share, settings))
    except BaseException as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return RuntimeError(f"{type(error).__name__}: {error}")
        return error


def in_order(answers: list[Any], count: int) -> Iterator[Record]:
    """The records of all shares in the order of the plans. What a worker raised is raised here."""
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return (answers[at % len(answers)][at // len(answers)] for at in range(count))


def crew(program: Program, invariant: Invariant, workers: int) -> Crew:
    """As many processes as asked for."""
    return Alone(program, invariant) if workers == 1 else Several(program, invariant, workers)
