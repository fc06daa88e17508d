"""HF513: clean-up is only in a handler of errors, and a cancellation does not pass there.

Reported: a coroutine function acquires something, and a `try` that can suspend closes or releases it in
an `except Exception` that raises again, which shows that an error must not leave it open; a
CancelledError does leave it open, because it is no `Exception`. The same for a close method of the
object itself, for a lock of the object that the function has acquired, for a task that the function has
created and that only the handler cancels, and for what the `try` opens by the name of the method
(`await self._client.connect()`). For a flag of the object (`self._connecting`) that is set before the
`try`, and reset after it and in the handler; and for a counter, an attribute or an entry of a dict that is
set before the `try`, and taken back in a handler that raises again. For a future that the function has
created and stored, and that only the handler fails (pedantic: any other future). Also where the handler
only sets a flag, and a `finally` releases something if that is set.
A handler of time-outs, of `OSError` or `ConnectionError` counts as well, if it does not close the object
itself and sets no future, and of an attribute only for a flag and an entry of a dict; for a lock that the
function has acquired and for a task that it has created, one of any error.
Not reported: where a `finally`, a handler of `BaseException` or `CancelledError`, or a `try` around it
releases it as well, where nothing in the `try` suspends, and where the `try` awaits what is cancelled.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from handfast._check.finding import Finding
from handfast._check.model.operations.state_changes import (
    always_before,
    block_around,
    changed,
    flags_set,
    undone,
)
from handfast._check.model.syntax.ancestors import (
    TRY,
    AnyTry,
    ancestors,
    assignments,
    calls_in,
    last_name,
    nodes_in,
)
from handfast._check.model.syntax.function import Function, names_in
from handfast._check.model.syntax.handlers import Handler, cancel_handlers, handlers
from handfast._check.model.syntax.module import Module
from handfast._check.model.tasks.awaited import awaits_in
from handfast._check.model.tasks.creation import any_creation_in
from handfast._check.model.tasks.handed_futures import is_future
from handfast._check.model.vocabulary import CLOSING
from handfast._check.rules.rule import Rule, line_of, related, report

_RELEASING = CLOSING | {"cancel", "abort", "unlink", "wait_closed", "rollback", "cleanup"}
_RELEASED = re.compile(
    r"(?!is_)_*(?:\w+_)?(?:close|closed|release|released|abort|rollback|disconnect|terminate)"
    r"(?:_connection|_writer|_transport|_session)?"
)
_OPENING = re.compile(r"(?:\w+_)?(?:connect|open|start)|__aenter__")
_PLAIN = {"Exception", "builtins.Exception"}
_FAILURES = _PLAIN | {
    "OSError", "IOError", "EnvironmentError", "ConnectionError", "TimeoutError", "IncompleteReadError",
}  # fmt: skip


def check(module: Module) -> Iterator[Finding]:
    for function in module.functions:
        reported: set[AnyTry] = set()
        for handler in handlers(function) if function.is_async else ():
            # Several handlers of one `try` mostly do the same.
            if handler.kinds and handler.tried not in reported:
                for finding in _skipped(handler):
                    reported.add(handler.tried)
                    yield finding
            if not _FAILURES.isdisjoint(handler.kinds):
                yield from _unflagged(handler)


def _raises_at_end(handler: ast.ExceptHandler) -> bool:
    match handler.body[-1]:
        case ast.Raise():
            return True
        # `except Exception as e: try: await x.close() finally: raise e`
        case ast.Try(finalbody=[*_, ast.Raise()]):
            return True
    return False


def _skipped(handler: Handler) -> Iterator[Finding]:
    function, tried = handler.function, handler.tried
    wait = next(awaits_in(tried.body), None)
    if wait is None or cancel_handlers(function, tried):
        return
    if _raises_at_end(handler.node):
        released = _released(function, handler.node.body)
        names = [name for name in released if _is_open_at(function, tried, name)]
        if not _is_plain(handler):
            names = [each for each in names if _is_for_all_errors(handler, each, released[each])]
    else:
        released = _ended_tasks(function, tried, handler.node.body)
        names = list(released) if _is_plain(handler) else []
    unset = _unset_future(handler) if _is_plain(handler) else None
    if unset is not None:
        yield _waits_for_ever(handler, wait, unset)
    elif not names and (_is_plain(handler) or _is_of_failures(handler)):
        flags = list(_flag_kept(handler, wait))
        yield from flags
        if not flags and _raises_at_end(handler.node):
            yield from _state_kept(handler, wait)
    elif names and not _is_released_around(function, tried, set(names)):
        name = names[0]
        what = (
            "the object is not closed"
            if name == function.self_here
            else f"`{name}` is not released"
        )
        yield report(
            "HF513",
            function.module,
            handler.node.type or handler.node,
            f"A cancellation at the `await` on line {line_of(wait)} skips {_described(handler)}, so "
            f"{what} then: {_advice(handler)}",
            related(function.module, wait, "the CancelledError is raised here"),
            related(function.module, released[name], "released here, for an error only"),
        )


def _is_plain(handler: Handler) -> bool:
    return not _PLAIN.isdisjoint(handler.kinds)


def _advice(handler: Handler) -> str:
    if _is_plain(handler):
        return "use `except BaseException`, or a `finally`"
    return "clean up in an `except BaseException` that raises again, or in a `finally`"


def _described(handler: Handler) -> str:
    names = [each.rpartition(".")[2] for each in handler.kinds]
    if _is_plain(handler):
        return "this `except Exception`"
    return f"this `except {names[0]}`" if len(names) == 1 else "this handler"


def _is_for_all_errors(handler: Handler, name: str, end: ast.Call) -> bool:
    """Whether what a handler of a few errors releases has to be released after any other, too."""
    function = handler.function
    if last_name(end.func) in ("cancel", "cancel_task"):
        waited = {each for wait in awaits_in(handler.tried.body) for each in names_in(wait)}
        if name in waited:
            return False  # the `await` passes the cancellation on
        if any(any_creation_in(function, each) for each in function.assigned.get(name, ())):
            return True
    if name.startswith("self."):
        return True  # a lock that the function has acquired
    made = function.assigned.get(name, ())
    if name == function.self_here or any(_is_found(function, each) for each in made):
        return False
    return _is_of_failures(handler)


def _is_found(function: Function, value: ast.expr) -> bool:
    """Whether a value was there before: a name, or what `get_node()` returns."""
    if isinstance(value, ast.Call):
        return last_name(value.func).startswith("get")
    return not isinstance(value, ast.Await)


def _is_of_failures(handler: Handler) -> bool:
    """Whether a handler catches an error that any connection may have, and not one of a protocol."""
    return not _FAILURES.isdisjoint(each.rpartition(".")[2] for each in handler.kinds)


def _unset_future(handler: Handler) -> ast.Call | None:
    """Where a handler sets an error on a future that the normal way gives its result."""
    function, tried = handler.function, handler.tried
    block = block_around(function, tried)
    after = block[block.index(tried) + 1 :] if tried in block else []
    results = {
        function.name_of(call.func.value)
        for call in calls_in([*tried.body, *tried.orelse, *after])
        if isinstance(call.func, ast.Attribute) and call.func.attr == "set_result"
    } - {""}
    for call in calls_in(handler.node.body):
        match call.func:
            case ast.Attribute(future, "set_exception") if function.name_of(future) in results:
                name = function.name_of(future).partition(".")[0]
                if not _is_released_around(function, tried, {name}):
                    return call
    return None


def _waits_for_ever(handler: Handler, wait: ast.AST, unset: ast.Call) -> Finding:
    function = handler.function
    assert isinstance(unset.func, ast.Attribute)
    name = function.name_of(unset.func.value)
    return report(
        "HF513",
        function.module,
        handler.node.type or handler.node,
        f"A cancellation at the `await` on line {line_of(wait)} skips this `except Exception`, so `{name}` "
        "is never set, and its waiters wait for ever: catch CancelledError as well, cancel the future, "
        "and raise it again",
        related(function.module, wait, "the CancelledError is raised here"),
        related(function.module, unset, "set here, for an error only"),
        # Others are mostly set by a task of its own, which only ends with the program.
        pedantic=not _is_published(function, name),
    )


def _is_published(function: Function, name: str) -> bool:
    """Whether a function creates a future and stores it for others, who then wait for its own work."""
    return any(is_future(function, value) for value in function.assigned.get(name, ())) and any(
        isinstance(value, ast.Name) and value.id == name and not isinstance(target, ast.Name)
        for node in function.nodes
        for target, value in assignments(node)
    )


def _unflagged(handler: Handler) -> Iterator[Finding]:
    """`except OSError: broken = True; raise`, and `finally: if broken: stream.abort()`."""
    function, tried = handler.function, handler.tried
    wait = next(awaits_in(tried.body), None)
    if wait is None or not _raises_at_end(handler.node):
        return
    if cancel_handlers(function, tried):
        return
    flags = {
        target.id
        for stmt in handler.node.body
        if isinstance(stmt, ast.Assign)
        and isinstance(stmt.value, ast.Constant)
        and stmt.value.value
        for target in stmt.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes_in(tried.finalbody):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id in flags:
            released = _released(function, node.body)
            for name in list(released)[:1]:
                yield report(
                    "HF513",
                    function.module,
                    handler.node.type or handler.node,
                    f"A cancellation at the `await` on line {line_of(wait)} is not caught here, so "
                    f"`{node.test.id}` is not set and the `finally` does not release `{name}`: catch "
                    "CancelledError as well, and raise it again",
                    related(function.module, wait, "the CancelledError is raised here"),
                    related(function.module, released[name], "released here, after an error only"),
                )


def _released(function: Function, body: list[ast.stmt]) -> dict[str, ast.Call]:
    """What a block closes or releases, by name: `writer.close()`, `pool.release(connection)`."""
    found: dict[str, ast.Call] = {}
    for call in calls_in(body):
        match call:
            case ast.Call(ast.Attribute(receiver, method), arguments) if _releases(method):
                for each in arguments or [receiver]:
                    if name := function.name_of(each):
                        found.setdefault(name, call)
    return found


def _releases(method: str) -> bool:
    return method in _RELEASING or _RELEASED.fullmatch(method) is not None


def _ended_tasks(function: Function, tried: AnyTry, body: list[ast.stmt]) -> dict[str, ast.Call]:
    """The tasks of the function that a block cancels, and for which the `try` does not wait: an `await`
    of a task passes the cancellation on to it."""
    waited = {name for each in awaits_in(tried.body) for name in names_in(each)}
    found: dict[str, ast.Call] = {}
    for call in calls_in(body):
        match call:
            case ast.Call(ast.Attribute(ast.Name(name), "cancel"), []):
                pass
            case ast.Call(ast.Attribute(_, "cancel_task"), [ast.Name(name), *_]):
                pass
            case _:
                continue
        values = function.assigned.get(name, ())
        if name not in waited and any(any_creation_in(function, each) for each in values):
            found.setdefault(name, call)
    return found


def _is_open_at(function: Function, tried: AnyTry, name: str) -> bool:
    """Whether the function itself has acquired it in a local name, before the `try` or in it, or it is
    the object itself, in a method that opens or uses it."""
    if name == function.self_here:
        return True
    if name.startswith("self."):
        return _is_acquired_before(function, tried, name) or _is_opened_in(function, tried, name)
    return any(
        isinstance(value, ast.Await | ast.Call)
        and (value.lineno < tried.lineno or _is_assigned_before_wait(function, value, tried))
        for value in function.assigned.get(name, ())
    )


def _is_assigned_before_wait(function: Function, value: ast.expr, tried: AnyTry) -> bool:
    """Whether the `try` suspends again after this value: until an `await` has returned, there is nothing
    to release."""
    flow = function.flow
    start = flow.of(value)
    return any(value is each for each in nodes_in(tried.body)) and any(
        step is not start and flow.reaches(start, step, {flow.of(each) for each in tried.handlers})
        for step in map(flow.of, awaits_in(tried.body))
    )


def _is_acquired_before(function: Function, tried: AnyTry, name: str) -> bool:
    """`await self._lock.acquire()` just before the `try`."""
    for node in function.nodes:
        match node:
            case ast.Await(ast.Call(ast.Attribute(lock, "acquire"))) if node.lineno < tried.lineno:
                if function.name_of(lock) == name:
                    return True
    return False


def _is_opened_in(function: Function, tried: AnyTry, name: str) -> bool:
    """`try: await self._client.connect()`."""
    for wait in awaits_in(tried.body):
        match wait:
            case ast.Await(ast.Call(ast.Attribute(receiver, method))):
                if _OPENING.fullmatch(method) and function.name_of(receiver) == name:
                    return True
    return False


def _flag_kept(handler: Handler, wait: ast.AST) -> Iterator[Finding]:
    """A flag of the object that an error and the normal way reset, and a cancellation does not."""
    function, tried = handler.function, handler.tried
    block = block_around(function, tried)
    at = block.index(tried) if tried in block else 0
    # Before: the statements just above the `try`. After: those that follow it, and its `else`.
    before, after = flags_set(function, block[:at]), [*tried.orelse, *block[at + 1 :], *tried.body]
    reset, reset_after = flags_set(function, handler.node.body), flags_set(function, after)
    for name, (node, value) in reset.items():
        was, again = before.get(name), reset_after.get(name)
        if was is None or again is None or was[1] == value or again[1] != value:
            continue
        if _is_stored_around(function, tried, name):
            continue
        yield report(
            "HF513",
            function.module,
            handler.node.type or handler.node,
            f"A cancellation at the `await` on line {line_of(wait)} skips {_described(handler)}, so "
            f"`{name}` stays {was[1]} for ever: use a `finally`",
            related(function.module, was[0], "set here"),
            related(function.module, node, "reset here, for an error only"),
        )


def _state_kept(handler: Handler, wait: ast.AST) -> Iterator[Finding]:
    """What the function changes in an object before the `try`, and takes back after an error only:
    `self._users += 1; try: await connect() except Exception: self._users -= 1; raise`."""
    function, tried = handler.function, handler.tried
    taken_back = list(undone(function, handler.node.body))
    for node in function.nodes if taken_back else ():
        name = changed(function, node)
        if not name or not isinstance(node, ast.stmt) or node.lineno >= tried.lineno:
            continue
        again = next((each for other, each in taken_back if other == name), None)
        if again is None or not always_before(function, node, tried):
            continue
        # After an OSError only the connection may have to be reset; an entry is always a leak.
        if not (name.endswith("]") or _is_plain(handler)):
            continue
        if not _is_stored_around(function, tried, name.split("[")[0]):
            yield report(
                "HF513",
                function.module,
                handler.node.type or handler.node,
                f"A cancellation at the `await` on line {line_of(wait)} skips {_described(handler)}, so "
                f"`{name}` stays as line {node.lineno} has set it: {_advice(handler)}",
                related(function.module, node, "changed here"),
                related(function.module, again, "taken back here, for an error only"),
            )
        return


def _is_stored_around(function: Function, tried: AnyTry, name: str) -> bool:
    """Whether a `finally` or a handler of cancellations, here or around, stores the attribute."""
    for up in (tried, *ancestors(function, tried)):
        if isinstance(up, TRY):
            ends = [*up.finalbody]
            for each in cancel_handlers(function, up):
                ends += each.body
            for node in nodes_in(ends):
                if isinstance(node, ast.Attribute) and function.name_of(node) == name:
                    return True
    return False


def _is_released_around(function: Function, tried: AnyTry, names: set[str]) -> bool:
    """Whether this `try` or one around it releases one of the names on a cancellation, too."""
    for up in (tried, *ancestors(function, tried)):
        if isinstance(up, TRY):
            ends = [*up.finalbody]
            for each in cancel_handlers(function, up):
                ends += each.body
            if not names.isdisjoint(_used(function, ends)):
                return True
        elif isinstance(up, (ast.With, ast.AsyncWith)):
            entered = [node for item in up.items for node in ast.walk(item)]
            if any(isinstance(node, ast.Name) and node.id in names for node in entered):
                return True
    return False


def _used(function: Function, body: list[ast.stmt]) -> set[str]:
    """The names that a block uses; the object itself only if the block calls a method of it."""
    used = {node.id for node in nodes_in(body) if isinstance(node, ast.Name)} - {function.self_here}
    called = {call.func.value for call in calls_in(body) if isinstance(call.func, ast.Attribute)}
    return used | {each.id for each in called if isinstance(each, ast.Name)}


RULE = Rule(
    "HF513",
    check,
    needs=(
        "except Exception|Exception,|, Exception|OSError|IOError|ConnectionError|EnvironmentError"
        "|TimeoutError|IncompleteReadError|create_task|ensure_future|.acquire(",
        "async ",
        "|".join(f"{each}(" for each in sorted({*_RELEASING, "closed", "cancel_task"}))
        + "|= True|-= 1|= None|pop(|del self|set_exception(",
    ),
)
