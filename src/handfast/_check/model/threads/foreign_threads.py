"""Which functions run on a thread that is not the event loop's, and why.

The evidence is in the module: a function is given to a thread, to an executor, or to a library that
is known to call back on threads of its own. A library that is missing here costs findings of HF401 to
HF403; one that calls on the loop after all costs false alarms, hence `unless` and `unless_named`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from handfast._check.model.syntax.ancestors import ancestors, calls_in, contains, last_name
from handfast._check.model.syntax.call_graph import closure, resolve_function
from handfast._check.model.syntax.function import Function
from handfast._check.model.syntax.memo import remembered
from handfast._check.model.syntax.module import Class, Module
from handfast._check.model.threads.callbacks import given as given_to_declared

# Calls that run an argument on a thread: the name, and the position or keyword of the function.
_THREADS: dict[str, int | str] = {
    "threading.Thread": "target",
    "threading.Timer": 1,
    "asyncio.to_thread": 0,
    "anyio.to_thread.run_sync": 0,
    "trio.to_thread.run_sync": 0,
    "starlette.concurrency.run_in_threadpool": 0,
    "fastapi.concurrency.run_in_threadpool": 0,
    "asgiref.sync.sync_to_async": 0,
    "_thread.start_new_thread": 0,
    "concurrent.futures.thread.submit": 0,
    "sounddevice.InputStream": "callback",
    "sounddevice.OutputStream": "callback",
    "sounddevice.RawInputStream": "callback",
    "sounddevice.RawOutputStream": "callback",
    "sounddevice.Stream": "callback",
    "zeroconf.ServiceBrowser": "handlers",
    "pynput.keyboard.Listener": "on_press",
    "pynput.mouse.Listener": "on_click",
}
_THREAD_METHODS: dict[str, int | str] = {
    # By the name of the method alone: no other library has these.
    "run_in_executor": 1,
    "async_add_executor_job": 0,
    "add_executor_job": 0,
    # The callback of a `multiprocessing.Pool` runs on its result thread.
    "apply_async": "callback",
}
# paho calls these from within `connect`, on the thread that connects.
_WHILE_CONNECTING = {"on_socket_open", "on_socket_register_write", "on_pre_connect"}


# A file without any of these has nothing that runs on a thread, and is not searched. Plain words: a
# search for each is faster than one regular expression.
_THREAD_WORDS = (
    "thread", "Thread", "Timer", "executor", ".submit(", "sounddevice", "zeroconf", "pynput",
    "sync_to_async", "paho", "watchdog", "reactivex", " rx", "pubsub", "apscheduler",
    "cognitiveservices", "websocket", "pyaudio", "gpiozero", "RPi", "speech_recognition", "assemblyai",
    "apply_async",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Library:
    """A library that calls back on threads of its own, and how it is given the callbacks.

    The names of attributes, calls, bases and methods are separated by spaces.
    """

    packages: tuple[str, ...]
    attributes: str = ""
    """`client.on_message = f`"""
    calls: str = ""
    """`source.subscribe(f)`"""
    bases: str = ""
    """`class Handler(FileSystemEventHandler)`: its `methods`"""
    methods: str = ""
    unless: tuple[str, ...] = ()
    """Imports that make the library call on the loop instead: a scheduler for asyncio."""
    unless_named: tuple[str, ...] = ()
    """Names in a module that drives the library from its loop: `client.loop_misc()`."""


# To add a library, add an entry.
_LIBRARIES = (
    Library(
        ("paho",),
        attributes="on_message on_connect on_disconnect on_publish on_subscribe on_unsubscribe on_log"
        " on_connect_fail on_pre_connect on_socket_close",
        calls="message_callback_add",
        unless_named=("loop_read", "loop_misc", "on_socket_open"),
    ),
    Library(
        ("watchdog",),
        bases="FileSystemEventHandler PatternMatchingEventHandler RegexMatchingEventHandler"
        " LoggingEventHandler",
        methods="dispatch on_any_event on_modified on_created on_deleted on_moved on_closed on_opened",
    ),
    Library(
        ("reactivex", "rx"),
        calls="subscribe map flat_map flat_map_indexed concat_map switch_map do_action filter starmap"
        " scan map_indexed for_each defer",
        unless=(
            "reactivex.scheduler.eventloop",
            "rx.scheduler.eventloop",
            "reactivex.scheduler.AsyncIOScheduler",
            "rx.scheduler.AsyncIOScheduler",
        ),
    ),
    Library(("azure.cognitiveservices.speech",), calls="connect"),
    Library(("websocket",), calls="WebSocketApp"),
    Library(("pyaudio",), calls="open"),
    Library(("pynput",), calls="Listener GlobalHotKeys"),
    Library(("speech_recognition",), calls="listen_in_background"),
    Library(("assemblyai",), calls="RealtimeTranscriber"),
    Library(("RPi",), calls="add_event_detect add_event_callback"),
    Library(("gpiozero",), attributes="when_pressed when_released when_held when_activated"),
    Library(("google.cloud.pubsub_v1", "google.cloud.pubsub"), calls="subscribe"),
    Library(
        ("apscheduler.schedulers.background",),
        calls="add_job",
        unless=("apscheduler.schedulers.asyncio",),
    ),
)
# Methods that are given callbacks, by their names. The callbacks of one object run on one thread.
_REGISTERING = {
    "on", "register", "subscribe", "connect", "add_listener", "add_callback", "add_handler",
    "register_callback", "register_handler", "set_callback", "set_callbacks", "set_handler", "bind",
    "observe", "attach", "listen",
}  # fmt: skip
# Only code on another thread has a use for these.
_CROSSING = {"call_soon_threadsafe", "run_coroutine_threadsafe"}
# A function that calls one of these runs an event loop of its own on the thread.
_LOOP_RUNNERS = re.compile(
    r"(?:.*\.)?(?:run_until_complete|run_forever|set_event_loop|new_event_loop)|asyncio\.run|(?:.*\.)?Runner"
    r"|anyio\.run|trio\.run|uvloop\.run|(?:.*\.)?_?(?:make|create|new|get_new|init|setup)_(?:\w+_)?loop"
    r"|(?:.*\.)?_?(?:make|create|new|ensure|get_or_create|init|setup)_event_loop\w*|(?:.*\.)?asyncio_run|(?:.*\.)?run_async"
)
# A function that calls one of these distinguishes threads, and is taken to be right about it.
_THREAD_CHECKS = {
    "threading.current_thread", "threading.get_ident", "threading.main_thread",
    "threading.get_native_id", "asyncio.get_running_loop", "asyncio._get_running_loop",
    "asyncio.current_task", "sniffio.current_async_library",
}  # fmt: skip


@remembered
def thread_targets(module: Module) -> dict[Function, ast.AST]:
    """The functions that are started or called on a thread, each with the node that does it."""
    found: dict[Function, ast.AST] = {}
    for function, node, given in given_to_declared(module):
        for target in _targets(function, given):
            # A coroutine function on a thread only creates a coroutine.
            if not target.is_async:
                found.setdefault(target, node)
    if "threadsafe" in module.source.text:
        for target, node in _beside_threadsafe(module):
            found.setdefault(target, node)
    if not any(word in module.source.text for word in _THREAD_WORDS):
        return found
    for function, call in module.calls():
        for given in _given_to_thread(function, call):
            for target in _targets(function, given):
                if not target.is_async:
                    found.setdefault(target, call)
    for klass in module.classes.values():
        for method, base in _called_by_base(klass):
            found.setdefault(method, base)
    for library in _used_libraries(module):
        for target, node in _given_to_library(module, library):
            if not target.is_async:
                found.setdefault(target, node)
    if module.names.imports("paho"):
        for target, node in _called_while_connecting(module):
            found.setdefault(target, node)
    return found


@dataclass(frozen=True, slots=True)
class ForeignThread:
    """Why a function runs on a thread that is not the loop's."""

    start: Function
    """The function that is started there: this one, or one that calls it."""
    node: ast.AST
    """The node that starts it."""


@remembered
def foreign_threads(module: Module) -> dict[Function, ForeignThread]:
    """The plain functions that run on a thread which is not the loop's, through calls in the module.

    A thread whose code creates or runs a loop of its own is left out as a whole, and so is a
    function that tests on which thread it runs.
    """
    found: dict[Function, ForeignThread] = {}
    for start, node in thread_targets(module).items():
        reached = _runs_on_thread(start)
        # `Thread(target=self._serve)`, where `_serve` calls `asyncio.run`: that thread has a loop,
        # and `create_task` on it is right.
        if any(runs_own_loop(each) for each in reached):
            continue
        for each in reached:
            found.setdefault(each, ForeignThread(start, node))
    return found


def runs_own_loop(function: Function) -> bool:
    """Whether a function creates, sets or runs an event loop."""
    return any(_LOOP_RUNNERS.fullmatch(function.name_of(call.func)) for call in function.calls)


def _runs_on_thread(start: Function) -> list[Function]:
    """The functions that a thread runs; not the coroutines that it only creates."""

    def called(function: Function) -> Iterator[Function]:
        for call in function.calls:
            for each in resolve_function(function, call.func):
                if not each.is_async and not _checks_thread(each):
                    yield each

    return [] if start.is_async or _checks_thread(start) else closure(start, called)


def _checks_thread(function: Function) -> bool:
    """Whether a function asks on which thread it runs, itself or through a function that only asks."""
    return _asks_for_thread(function) or any(
        _asks_for_thread(each) and contains(each.body, ast.Compare)
        for up in function.nodes
        if isinstance(up, ast.If | ast.IfExp)
        for call in calls_in([up.test])
        for each in resolve_function(function, call.func)
    )


@remembered
def _asks_for_thread(function: Function) -> bool:
    return any(function.name_of(call.func) in _THREAD_CHECKS for call in function.calls)


def _targets(function: Function, given: ast.expr) -> Iterator[Function]:
    if isinstance(given, ast.Lambda):
        yield function.module.function_of(given)
    elif isinstance(given, ast.List | ast.Tuple):
        for each in given.elts:
            yield from _targets(function, each)
    else:
        yield from resolve_function(function, given)


def _beside_threadsafe(module: Module) -> Iterator[tuple[Function, ast.AST]]:
    """The functions that must run on a thread, because they call `call_soon_threadsafe` there, and the
    callbacks that are given to the same object as one of those."""
    crossing: dict[Function, ast.AST] = {}
    for function, call in module.calls():
        if _is_crossing(function, call):
            crossing.setdefault(function, call)
    yield from crossing.items()
    for function in module.functions if crossing else ():
        groups: dict[str, list[Function]] = {}
        for node in function.nodes:
            match node:
                case ast.Assign([ast.Attribute(owner, attr)], value) if attr.startswith("on_"):
                    name = function.name_of(owner)
                    groups.setdefault(name, []).extend(_targets(function, value))
                case ast.Call(ast.Attribute(owner, attr), arguments) if attr in _REGISTERING:
                    name = function.name_of(owner)
                    for argument in arguments:
                        groups.setdefault(name, []).extend(_methods(function, argument))
        for name, given in groups.items():
            across = next((each for each in given if each in crossing), None)
            if name not in ("", "self") and across is not None and not _is_driven(module):
                yield from ((each, crossing[across]) for each in given if not each.is_async)


def _methods(function: Function, given: ast.expr) -> Iterator[Function]:
    """The plain function that an argument is; not one that only has the same name as a value."""
    if isinstance(given, ast.Attribute | ast.Lambda):
        yield from _targets(function, given)


def _is_crossing(function: Function, call: ast.Call) -> bool:
    """Whether a plain function always passes something on to the loop of another thread."""
    match call.func:
        case ast.Attribute(attr=method) | ast.Name(method) if method in _CROSSING:
            # One that asks for the loop of its thread runs on a thread that has one. Under a test or in
            # a handler, the call may be for one of two kinds of callers.
            branches = (ast.If, ast.IfExp, ast.ExceptHandler, ast.Match)
            return (
                not function.is_async
                and not any(_gets_loop(each) for each in function.calls)
                and not any(isinstance(up, branches) for up in ancestors(function, call))
            )
    return False


def _gets_loop(call: ast.Call) -> bool:
    return last_name(call.func) in ("get_event_loop", "get_running_loop")


def _is_driven(module: Module) -> bool:
    """Whether the loop itself calls the library: then some of its callbacks run on the loop."""
    names = (name for library in _LIBRARIES for name in library.unless_named)
    return any(name in module.source.text for name in names)


def _called_by_base(klass: Class) -> Iterator[tuple[Function, ast.AST]]:
    """The `run` of a thread, and the methods that a library's base class calls on its thread."""
    libraries = [each for each in _used_libraries(klass.module) if each.bases]
    if not libraries and "run" not in klass.methods:
        return
    bases = {name for each in klass.lineage for name in each.base_names}
    if "threading.Thread" in bases and "run" in klass.methods:
        yield klass.methods["run"], klass.node
    for library in libraries:
        if any(name.rpartition(".")[2] in library.bases.split() for name in bases):
            for name in sorted(klass.methods.keys() & library.methods.split()):
                if not klass.methods[name].is_async:
                    yield klass.methods[name], klass.node


def _used_libraries(module: Module) -> Iterator[Library]:
    for library in _LIBRARIES:
        if any(map(module.names.imports, library.packages)):
            # Not reported for the whole module: which of its callbacks run on the loop is not known.
            on_loop = any(map(module.names.imports, library.unless)) or any(
                name in module.source.text for name in library.unless_named
            )
            if not on_loop:
                yield library


def _given_to_library(module: Module, library: Library) -> Iterator[tuple[Function, ast.AST]]:
    attributes, calls = library.attributes.split(), library.calls.split()
    for function in (module.body, *module.functions):
        for node in function.nodes:
            match node:
                case ast.Assign([ast.Attribute(_, attr)], value) if attr in attributes:
                    yield from ((each, node) for each in _targets(function, value))
                case ast.Call(ast.Attribute(_, attr) | ast.Name(attr), given, named):
                    if attr in calls:
                        for value in (*given, *(each.value for each in named)):
                            yield from ((each, node) for each in _targets(function, value))


def _called_while_connecting(module: Module) -> Iterator[tuple[Function, ast.AST]]:
    """What a paho client calls on the thread on which its `connect` runs."""
    handed = [
        call
        for function, call in module.calls()
        for given in _given_to_thread(function, call)
        if isinstance(given, ast.Attribute) and given.attr in ("connect", "reconnect")
    ]
    for attribute in sorted(_WHILE_CONNECTING) if handed else ():
        given = {each for each, _ in _given_to_library(module, Library((), attribute))}
        # Set twice, it may be one callback for the thread and, once connected, one for the loop.
        if len(given) == 1:
            yield given.pop(), handed[0]


def _given_to_thread(function: Function, call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that it runs on a thread."""
    where = _THREADS.get(function.name_of(call.func))
    match call.func:
        case ast.Attribute(receiver, method) if where is None:
            where = _THREAD_METHODS.get(method)
            if (method == "submit" and _is_executor(function, receiver)) or (
                method == "add_done_callback" and _is_executor_future(function, receiver)
            ):
                where = 0
    if isinstance(where, int) and len(call.args) > where:
        yield call.args[where]
    yield from (keyword.value for keyword in call.keywords if keyword.arg == where)


def _is_executor_future(function: Function, node: ast.expr) -> bool:
    """Whether an expression is a future that an executor's `submit` returned."""
    values = [node, *(function.assigned.get(node.id, ()) if isinstance(node, ast.Name) else ())]
    for each in values:
        match each:
            case ast.Call(ast.Attribute(receiver, "submit")) if _is_executor(function, receiver):
                return True
    return False


def _is_executor(function: Function, node: ast.expr) -> bool:
    # By the name, because an executor is mostly an argument or an attribute that is set elsewhere.
    name = function.last_name_of(node).lower()
    if "executor" in name or "pool" in name:
        return True
    return any("Executor()" in root for root in function.roots(node))
