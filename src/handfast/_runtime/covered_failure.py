"""Finds the error of a task that had failed already when it was cancelled.

    try:
        raise ValueError
    finally:
        await save()        # cancelled here

The task ends with a CancelledError, and the ValueError is only its context. The context alone does
not say so: in `except ConnectionError: await asyncio.sleep(delay)` the error is handled. So the
exception table of the code is read, in the same way as the interpreter does when it unwinds.
The answer is only given if no `except` around that line could have handled the error: the classes
of each are looked up, and anything but names of globals, as `asyncio.TimeoutError`, might match.
"""

from __future__ import annotations

import builtins
import dis
from asyncio import CancelledError
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, ModuleType, TracebackType
from typing import Any, Literal, NamedTuple

# Their `except` clauses pass on what is not their own.
_TRANSPARENT = ("contextlib", "handfast")


class _Handler(NamedTuple):
    """A handler around an instruction."""

    kind: Literal["except", "with", "finally"]
    """`async with` counts as "finally": unlike a plain `with`, it hardly ever suppresses errors."""
    active: bool
    """It runs; or else an error in its block would start it."""
    classes: tuple[str, ...] | None = None
    """The dotted names of the classes that an `except` handles; None if it may handle any."""


def covered_failure(cancelled: CancelledError) -> BaseException | None:
    """The error with which the task would have ended without this cancel, if it is certain."""
    failure = cancelled.__context__
    if failure is None or isinstance(failure, (CancelledError, GeneratorExit)):
        return None
    unwound = False  # whether the handler was found in which the cancel has come
    for handler, names in _around(cancelled.__traceback__):
        if not unwound and handler.active:
            if handler.kind == "except":
                return None
            unwound = True
        elif unwound and not handler.active and _may_handle(handler, names, failure):
            return None
    return failure if unwound else None


def _may_handle(handler: _Handler, names: dict[str, Any], failure: BaseException) -> bool:
    """Whether this handler, in code with these globals, might have handled the failure."""
    if handler.kind == "finally":
        return False
    if handler.classes is None:
        return True
    return any(_may_match(_look_up(name, names), failure) for name in handler.classes)


def _look_up(dotted: str, names: dict[str, Any]) -> Any:
    """A global, or what a module has under a name. None if it is anything else."""
    first, *rest = dotted.split(".")
    found = names.get(first, vars(builtins).get(first))
    for name in rest:
        found = vars(found).get(name) if isinstance(found, ModuleType) else None
    return found


def _may_match(found: Any, failure: BaseException) -> bool:
    kinds = found if isinstance(found, tuple) else (found,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        return True
    return isinstance(failure, kinds)


def _around(
    traceback: TracebackType | None,
) -> Iterator[tuple[_Handler, dict[str, Any]]]:
    """The handlers around the line at which an error was raised, the innermost first, with the
    globals of their code."""
    entries: list[TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    for entry in reversed(entries):
        module = str(entry.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in _TRANSPARENT:
            for handler in _handlers(entry.tb_frame.f_code, entry.tb_lasti):
                yield handler, entry.tb_frame.f_globals


@lru_cache(maxsize=256)
def _handlers(code: CodeType, lasti: int) -> tuple[_Handler, ...]:
    """The handlers around one instruction, the innermost first.

    An error at an instruction goes to the target of its table entry. That is a handler, which
    begins with PUSH_EXC_INFO; or the end of the handler that is active there, which restores the
    outer error with COPY, POP_EXCEPT, RERAISE. What a handler does not take goes to its end.
    """
    program = dis.Bytecode(code)
    entries: list[Any] = getattr(program, "exception_entries")  # noqa: B009 - not in typeshed
    instructions = list(program)
    index = {each.offset: number for number, each in enumerate(instructions)}
    found: list[_Handler] = []
    entered = 0
    offset = lasti
    while entry := next((e for e in entries if e.start <= offset < e.end), None):
        offset = entry.target
        first = instructions[index[offset]].opname
        if first == "PUSH_EXC_INFO":
            entered += 1
            kind = _kind(instructions[index[offset] + 1 :])
            classes = _classes(instructions, index, index[offset] + 1) if kind == "except" else None
            found.append(_Handler(kind, active=False, classes=classes))
        elif first == "COPY" and entered:
            entered -= 1
        elif first == "COPY":
            start = min(each.start for each in entries if each.target == offset)
            found.append(_Handler(_kind(instructions[index[start] + 1 :]), active=True))
    return tuple(found)


def _kind(instructions: list[dis.Instruction]) -> Literal["except", "with", "finally"]:
    """What a handler is, by the instructions after its PUSH_EXC_INFO."""
    names = [each.opname for each in instructions if each.opname != "CACHE"]
    if names[0] == "POP_TOP":
        return "except"  # without a class
    if names[0] == "WITH_EXCEPT_START":
        return "finally" if names[1] == "GET_AWAITABLE" else "with"
    for name in names:
        if name in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"):
            return "except"
        if name in ("PUSH_EXC_INFO", "RERAISE", "POP_EXCEPT", "POP_TOP"):
            break
    return "finally"


def _classes(
    instructions: list[dis.Instruction], index: dict[int, int], at: int
) -> tuple[str, ...] | None:
    """The names of the classes of all `except` clauses of a handler that begins here; None if one of
    them is anything but a name or a tuple of names."""
    found: list[str] = []
    for _ in instructions:  # each clause comes after the one before it
        at, clause = _clause(instructions, at)
        if instructions[at].opname == "RERAISE" and not clause:
            return tuple(found)
        if instructions[at].opname != "CHECK_EXC_MATCH":
            return None
        found += clause
        jump = instructions[at + 1]
        if "JUMP" not in jump.opname or "IF_FALSE" not in jump.opname:
            return None
        at = index[jump.argval]
    return None


def _clause(instructions: list[dis.Instruction], at: int) -> tuple[int, list[str]]:
    """The names that one clause puts on the stack, and where the code goes on."""
    names: list[str] = []
    while True:
        each = instructions[at]
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.append(str(each.argval))
        elif each.opname == "LOAD_ATTR" and names:
            names[-1] += f".{each.argval}"
        elif each.opname not in ("BUILD_TUPLE", "CACHE", "NOP", "NOT_TAKEN", "EXTENDED_ARG"):
            return at, names
        at += 1
