"""What functions are for: bodies of tasks, close methods, callbacks, code that runs on a thread."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from holdfast.check.model.function import Function
from holdfast.check.model.memo import remembered
from holdfast.check.model.module import Class, Module
from holdfast.check.model.tasks import Creation, creations, resolve_function
from holdfast.check.model.thread_callbacks import given as given_to_declared

__all__ = [
    "Foreign",
    "Library",
    "brings_loop",
    "close_methods",
    "close_methods_here",
    "foreign",
    "is_close_name",
    "is_start_name",
    "on_threads",
    "reached_from",
    "run_in",
    "task_bodies",
    "tasks_of",
]

_CLOSE = re.compile(
    r"_*(a|async_|do_|on_)?(close|stop|shutdown|shut_down|kill|terminate|disconnect|cleanup|clean_up"
    r"|teardown|tear_down|dispose|release|cancel|finish|exit|destroy|unload|join|drain|end|quit)"
    r"(_\w+|d)?"
)
_LEAVING = {"__aexit__", "__exit__", "__del__"}
_START = re.compile(
    r"_*(a|async_|do_|on_)?(start|startup|start_up|setup|set_up|init|initialize|run|main|open|launch"
    r"|connect|begin|serve|boot|bootstrap|activate|load|added|attach)(_\w+|ed)?"
)
_ENTERING = {"__aenter__", "__enter__", "__init__", "__post_init__"}
# Calls that run what they are given on a thread: the name, and where the function stands.
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
    "run_in_executor": 1,
    "async_add_executor_job": 0,
    "add_executor_job": 0,
    "apply_async": "callback",
}
# What paho calls from within `connect`, on the thread that connects.
_WHILE_CONNECTING = {"on_socket_open", "on_socket_register_write", "on_pre_connect"}


# A file without any of these has nothing that runs on a thread: it need not be gone through.
_THREAD_WORDS = re.compile(
    r"thread|Thread|Timer|executor|\.submit\(|sounddevice|zeroconf|pynput|sync_to_async"
    r"|paho|watchdog|reactivex|\brx\b|pubsub|apscheduler|cognitiveservices|websocket|pyaudio"
    r"|gpiozero|RPi|speech_recognition|assemblyai|apply_async"
)


@dataclass(frozen=True, slots=True)
class Library:
    """A library that calls back on threads of its own, and how it is given what it calls."""

    packages: tuple[str, ...]
    attributes: frozenset[str] = frozenset()
    """`client.on_message = f`"""
    calls: frozenset[str] = frozenset()
    """`source.subscribe(f)`"""
    bases: frozenset[str] = frozenset()
    """`class Handler(FileSystemEventHandler)`: its `methods`"""
    methods: frozenset[str] = frozenset()
    unless: tuple[str, ...] = ()
    """What a module imports that has it called on the loop instead."""
    unless_named: tuple[str, ...] = ()
    """What a module names if it drives the library from its loop."""


# To extend: one entry for each library.
_LIBRARIES = (
    Library(
        ("paho",),
        attributes=frozenset(
            {
                "on_message",
                "on_connect",
                "on_disconnect",
                "on_publish",
                "on_subscribe",
                "on_unsubscribe",
                "on_log",
                "on_connect_fail",
                "on_pre_connect",
                "on_socket_close",
            }
        ),
        calls=frozenset({"message_callback_add"}),
        unless_named=("loop_read", "loop_misc", "on_socket_open"),
    ),
    Library(
        ("watchdog",),
        bases=frozenset(
            {
                "FileSystemEventHandler",
                "PatternMatchingEventHandler",
                "RegexMatchingEventHandler",
                "LoggingEventHandler",
            }
        ),
        methods=frozenset(
            {
                "dispatch",
                "on_any_event",
                "on_modified",
                "on_created",
                "on_deleted",
                "on_moved",
                "on_closed",
                "on_opened",
            }
        ),
    ),
    Library(
        ("reactivex", "rx"),
        calls=frozenset(
            {
                "subscribe",
                "map",
                "flat_map",
                "flat_map_indexed",
                "concat_map",
                "switch_map",
                "do_action",
                "filter",
                "starmap",
                "scan",
                "map_indexed",
                "for_each",
                "defer",
            }
        ),
        unless=(
            "reactivex.scheduler.eventloop",
            "rx.scheduler.eventloop",
            "reactivex.scheduler.AsyncIOScheduler",
            "rx.scheduler.AsyncIOScheduler",
        ),
    ),
    Library(("azure.cognitiveservices.speech",), calls=frozenset({"connect"})),
    Library(("websocket",), calls=frozenset({"WebSocketApp"})),
    Library(("pyaudio",), calls=frozenset({"open"})),
    Library(("pynput",), calls=frozenset({"Listener", "GlobalHotKeys"})),
    Library(("speech_recognition",), calls=frozenset({"listen_in_background"})),
    Library(("assemblyai",), calls=frozenset({"RealtimeTranscriber"})),
    Library(("RPi",), calls=frozenset({"add_event_detect", "add_event_callback"})),
    Library(
        ("gpiozero",),
        attributes=frozenset({"when_pressed", "when_released", "when_held", "when_activated"}),
    ),
    Library(("google.cloud.pubsub_v1", "google.cloud.pubsub"), calls=frozenset({"subscribe"})),
    Library(
        ("apscheduler.schedulers.background",),
        calls=frozenset({"add_job"}),
        unless=("apscheduler.schedulers.asyncio",),
    ),
)
# Who calls one of these in a function brings a loop of his own to the thread.
_LOOP_BRINGERS = re.compile(
    r"run_until_complete|run_forever|set_event_loop|new_event_loop|asyncio\.run|(?:.*\.)?Runner"
    r"|anyio\.run|trio\.run|uvloop\.run|(?:.*\.)?_?(?:make|create|new|get_new|init|setup)_(?:\w+_)?loop"
    r"|(?:.*\.)?_?(?:make|create|new|ensure|get_or_create|init|setup)_event_loop\w*|(?:.*\.)?asyncio_run|(?:.*\.)?run_async"
)
# Who asks one of these knows about threads, and takes the one way or the other.
_THREAD_QUESTIONS = {
    "threading.current_thread", "threading.get_ident", "threading.main_thread",
    "threading.get_native_id", "asyncio.get_running_loop", "asyncio._get_running_loop",
    "asyncio.current_task", "sniffio.current_async_library",
}  # fmt: skip


def is_close_name(name: str) -> bool:
    """Whether a method of this name is there to end something."""
    return name in _LEAVING or _CLOSE.fullmatch(name) is not None


def is_start_name(name: str) -> bool:
    """Whether a method of this name is called once, to set its object going."""
    return name in _ENTERING or _START.fullmatch(name) is not None


def close_methods(klass: Class) -> list[Function]:
    """The methods of a class, inherited ones too, that are there to end it."""
    return [method for name, method in klass.all_methods.items() if is_close_name(name)]


def close_methods_here(klass: Class) -> list[Function]:
    """Those of them that stand in the file of the class; no other is read for the answer."""
    found: dict[str, Function] = {}
    for each in klass.near:
        for name, method in each.methods.items():
            if is_close_name(name):
                found.setdefault(name, method)
    return list(found.values())


@remembered
def tasks_of(module: Module) -> tuple[Creation, ...]:
    """Every making of a task in a module."""
    return tuple(creations(module))


def task_bodies(module: Module) -> set[Function]:
    """The functions of a module that run as tasks."""
    return {body for made in tasks_of(module) for body in made.bodies}


def reached_from(function: Function) -> set[Function]:
    """A function and all that it calls, as far as that is known in its module and class."""
    found: set[Function] = set()
    todo = [function]
    while todo:
        each = todo.pop()
        if each in found:
            continue
        found.add(each)
        for call in each.calls:
            todo += resolve_function(each, call.func)
    return found


def run_in(klass: Class, attributes: Collection[str]) -> set[Function]:
    """The functions that run in tasks which a class keeps in these attributes, whoever makes the
    task: `self._task = make_task(self._run())` is enough."""
    return {
        each
        for attribute, body in _kept_runs(klass)
        if attribute in attributes
        for each in reached_from(body)
    }


@remembered
def _kept_runs(klass: Class) -> tuple[tuple[str, Function], ...]:
    found: list[tuple[str, Function]] = []
    for part in klass.lineage:
        for function in part.functions:
            for node in function.nodes:
                match node:
                    case ast.Assign([target], ast.Call(_, [ast.Call(body), *_])):
                        name = function.name_of(target)
                        found += [(name, each) for each in resolve_function(function, body)]
    return tuple(found)


@remembered
def on_threads(module: Module) -> dict[Function, ast.AST]:
    """The functions that are started or called on a thread, each with what puts it there."""
    found: dict[Function, ast.AST] = {}
    for function, node, given in given_to_declared(module):
        for target in _targets(function, given):
            if not target.is_async:
                found.setdefault(target, node)
    if not _THREAD_WORDS.search(module.source.text):
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
class Foreign:
    """Why a function runs on a foreign thread."""

    start: Function
    """What is started there; the function itself, or one that calls it."""
    node: ast.AST
    """What starts it."""


@remembered
def foreign(module: Module) -> dict[Function, Foreign]:
    """The plain functions that run on a thread which is not the loop's, over calls in the module.

    A thread whose code makes or runs a loop of its own is left out as a whole, and so is a
    function that asks on which thread it is.
    """
    found: dict[Function, Foreign] = {}
    for start, node in on_threads(module).items():
        reached = _plainly_reached(start)
        if any(brings_loop(each) for each in reached):
            continue
        for each in reached:
            found.setdefault(each, Foreign(start, node))
    return found


def brings_loop(function: Function) -> bool:
    """Whether a function makes, sets or runs a loop."""
    return any(_LOOP_BRINGERS.fullmatch(_called_name(function, call)) for call in function.calls)


def _called_name(function: Function, call: ast.Call) -> str:
    name = function.name_of(call.func)
    last = name.rpartition(".")[2]
    return last if last in _OF_LOOPS else name


_OF_LOOPS = {"run_until_complete", "run_forever", "set_event_loop", "new_event_loop"}


def _plainly_reached(start: Function) -> list[Function]:
    """The functions that a thread goes through; not the coroutines that it only makes."""
    found: dict[Function, None] = {}  # in the order of the calls, so that findings come in one
    todo = [start]
    while todo:
        each = todo.pop()
        if each in found or each.is_async or _asks_where(each):
            continue
        found[each] = None
        for call in each.calls:
            todo += resolve_function(each, call.func)
    return list(found)


def _asks_where(function: Function) -> bool:
    return any(function.name_of(call.func) in _THREAD_QUESTIONS for call in function.calls)


def _targets(function: Function, given: ast.expr) -> Iterator[Function]:
    if isinstance(given, ast.Lambda):
        yield function.module.function_of(given)
    elif isinstance(given, ast.List | ast.Tuple):
        for each in given.elts:
            yield from _targets(function, each)
    else:
        yield from resolve_function(function, given)


def _called_by_base(klass: Class) -> Iterator[tuple[Function, ast.AST]]:
    """The `run` of a thread, and what a library's base class calls on its thread."""
    libraries = [each for each in _used_libraries(klass.module) if each.bases]
    if not libraries and "run" not in klass.methods:
        return
    bases = {name for each in klass.lineage for name in each.base_names}
    if "threading.Thread" in bases and "run" in klass.methods:
        yield klass.methods["run"], klass.node
    for library in libraries:
        if any(name.rpartition(".")[2] in library.bases for name in bases):
            for name in sorted(library.methods & klass.methods.keys()):
                if not klass.methods[name].is_async:
                    yield klass.methods[name], klass.node


def _used_libraries(module: Module) -> Iterator[Library]:
    for library in _LIBRARIES:
        if any(map(module.names.imports, library.packages)):
            on_loop = any(map(module.names.imports, library.unless)) or any(
                name in module.source.text for name in library.unless_named
            )
            if not on_loop:
                yield library


def _given_to_library(module: Module, library: Library) -> Iterator[tuple[Function, ast.AST]]:
    for function in (module.body, *module.functions):
        for node in function.nodes:
            match node:
                case ast.Assign([ast.Attribute(_, attr)], value) if attr in library.attributes:
                    yield from ((each, node) for each in _targets(function, value))
                case ast.Call(ast.Attribute(_, attr) | ast.Name(attr), given, named):
                    if attr in library.calls:
                        for value in (*given, *(each.value for each in named)):
                            yield from ((each, node) for each in _targets(function, value))


def _called_while_connecting(module: Module) -> Iterator[tuple[Function, ast.AST]]:
    """What a client of paho calls on the thread that its `connect` is handed to."""
    handed = [
        call
        for function, call in module.calls()
        for given in _given_to_thread(function, call)
        if isinstance(given, ast.Attribute) and given.attr in ("connect", "reconnect")
    ]
    for attribute in sorted(_WHILE_CONNECTING) if handed else ():
        given = {each for each, _ in _given_to_library(module, Library((), frozenset({attribute})))}
        # Who sets it twice may have one for the thread, and the other for the loop afterwards.
        if len(given) == 1:
            yield given.pop(), handed[0]


def _given_to_thread(function: Function, call: ast.Call) -> Iterator[ast.expr]:
    where = _THREADS.get(function.name_of(call.func))
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if where is None:
        where = _THREAD_METHODS.get(method)
    if where is None and method == "submit" and _is_executor(function, call.func):
        where = 0
    if where is None and method == "add_done_callback" and _is_of_executor(function, call.func):
        where = 0
    if isinstance(where, int) and len(call.args) > where:
        yield call.args[where]
    yield from (keyword.value for keyword in call.keywords if keyword.arg == where)


def _is_of_executor(function: Function, func: ast.expr) -> bool:
    """Whether this is a method of what an executor's `submit` gave."""
    assert isinstance(func, ast.Attribute)
    made = [func.value]
    if isinstance(func.value, ast.Name):
        made += function.assigned.get(func.value.id, [])
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "submit"
        and _is_executor(function, each.func)
        for each in made
    )


def _is_executor(function: Function, func: ast.expr) -> bool:
    assert isinstance(func, ast.Attribute)
    name = function.name_of(func.value).rpartition(".")[2].lower()
    made = function.roots(func.value)
    return "executor" in name or "pool" in name or any("Executor()" in each for each in made)
