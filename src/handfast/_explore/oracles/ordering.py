"""Look for an order of operations that a sequential model explains.

This is the search of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the
memory of Lowe ("Testing for linearizability", 2017): try each operation that may come next, and never
go on twice from the same set of operations in the same state of the model. The problem is
NP-complete, so the search counts its steps and gives up after a limit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from handfast._explore.oracles.model_state import ModelStates
from handfast._explore.oracles.operation import Operation


class WouldBlock(Exception):
    """Raised by a model: this operation has to wait in this state, so it does not come next.

    >>> class Lock:
    ...     held = False
    ...     def acquire(self):
    ...         if self.held:
    ...             raise WouldBlock
    ...         self.held = True
    ...         return True
    """


@dataclass(slots=True)
class Refusal:
    """An operation that the model cannot explain: it gives another answer, or would block."""

    operation: Operation
    answer: Any = None
    error: BaseException | None = None


@dataclass(slots=True)
class Found:
    """The result of a search: `order` explains the history; None if there is none or `gave_up`."""

    order: list[Operation] | None = None
    gave_up: bool = False
    # The longest order that the model explains, and why no operation can follow it.
    longest: list[Operation] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


# A set of operations as bits, and the state of the model after them.
_Node = tuple[int, bytes]


class Ordering:
    """One search. `real_time`: an operation that ended before another began comes before it; if
    not, that holds only between operations of one task."""

    def __init__(
        self,
        operations: Sequence[Operation],
        make_model: Callable[[], Any],
        *,
        real_time: bool,
        final: Callable[[Any], bool] | None,
        limit: int,
    ) -> None:
        # Those that responded first are tried first; an effect that may not have been comes last.
        self._operations = sorted(operations, key=lambda each: (each.ended, each.began))
        self._before = [self._predecessors(each, real_time) for each in self._operations]
        self._known = sum(1 << at for at, each in enumerate(self._operations) if each.known)
        self._states = ModelStates(operations)
        self._start = self._states.pack(make_model())
        self._final = final
        self._left = limit
        self._found = Found()
        self._longest = -1

    def search(self) -> Found:
        """Look for an order, depth first."""
        seen: set[_Node] = {(0, self._start)}
        path: list[int] = []
        stack = [self._successors(0, self._start)]
        found = self._found
        if self._is_end(0, self._start):
            found.order = []
            return found
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                if path:
                    path.pop()
                continue
            at, node = step
            if node in seen:
                continue
            seen.add(node)
            path.append(at)
            if self._is_end(*node):
                found.order = self._named(path)
                return found
            stack.append(self._successors(*node))
            self._note(path, node)
        found.gave_up = self._left < 0
        if not found.gave_up:
            self._explain()
        return found

    # --- inside ------------------------------------------------------------------------------

    def _predecessors(self, operation: Operation, real_time: bool) -> int:
        return sum(
            1 << at
            for at, each in enumerate(self._operations)
            if each.ended < operation.began and (real_time or each.task == operation.task)
        )

    def _successors(self, done: int, packed: bytes) -> Iterator[tuple[int, _Node]]:
        for at, operation in enumerate(self._operations):
            if done >> at & 1 or self._before[at] & ~done:
                continue
            self._left -= 1
            if self._left < 0:
                return
            model = self._states.unpack(packed)
            if self._refuses(model, operation) is None:
                yield at, (done | 1 << at, self._states.pack(model))

    def _refuses(self, model: Any, operation: Operation) -> Refusal | None:
        """Call the model; why it does not explain the operation, if it does not."""
        try:
            answer = getattr(model, operation.name)(*operation.args, **operation.kwargs)
        except WouldBlock as error:
            return Refusal(operation, error=error)
        except Exception as error:
            same = operation.error is not None and isinstance(operation.error, type(error))
            return None if same or not operation.known else Refusal(operation, error=error)
        if inspect.isawaitable(answer):
            getattr(answer, "close", lambda: None)()
            raise TypeError(f"a model is plain Python: {operation.name} of it must not be async")
        if not operation.known:
            return None
        same = operation.error is None and (
            operation.result is answer or operation.result == answer
        )
        return None if same else Refusal(operation, answer)

    def _is_end(self, done: int, packed: bytes) -> bool:
        if done & self._known != self._known:
            return False
        return self._final is None or bool(self._final(self._states.unpack(packed)))

    def _note(self, path: list[int], node: _Node) -> None:
        explained = (node[0] & self._known).bit_count()
        if explained > self._longest:
            self._longest = explained
            self._found.longest = self._named(path)

    def _explain(self) -> None:
        """Ask the model what it answers after the longest order."""
        done, model = 0, self._states.unpack(self._start)
        for operation in self._found.longest:
            self._refuses(model, operation)
            done |= 1 << self._operations.index(operation)
        packed = self._states.pack(model)
        for at, operation in enumerate(self._operations):
            if operation.known and not (done >> at & 1 or self._before[at] & ~done):
                refusal = self._refuses(self._states.unpack(packed), operation)
                if refusal is not None:
                    self._found.refusals.append(refusal)

    def _named(self, path: list[int]) -> list[Operation]:
        return [self._operations[at] for at in path]
