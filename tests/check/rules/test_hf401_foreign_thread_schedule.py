"""HF401: what may be called on a loop from a thread, and what may not."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf401_foreign_thread_schedule import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF401").code
    assert not RULE.pedantic
    assert lines(kind("HF401").wrong) == [13]
    assert findings(kind("HF401").right) == []


@pytest.mark.parametrize(
    "start",
    [
        "threading.Thread(target=self.work).start()",
        "threading.Timer(1, self.work).start()",
        "self.loop.run_in_executor(None, self.work)",
        "asyncio.to_thread(self.work)",
        "self.executor.submit(self.work)",
        "asyncio.to_thread(functools.partial(self.work, 1))",
        "threading.Thread(target=lambda: self.work()).start()",
        "self.pool.submit(print).add_done_callback(self.work)",
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        "asyncio.create_task(job())",
        "asyncio.ensure_future(job(), loop=self.loop)",
        "self.loop.create_task(job())",
        "self.loop.call_soon(job)",
        "self.loop.call_later(1, job)",
    ],
)
def test_work_that_a_thread_schedules_is_found(start: str, call: str) -> None:
    source = f"""\
import asyncio, functools, threading
class Bridge:
    def start(self):
        {start}
    def work(self, *_):
        {call}
"""
    assert lines(source) == [6]
    assert findings(source)[0].related[0].place.line == 4


@pytest.mark.parametrize(
    "call",
    [
        "self.loop.call_soon_threadsafe(job)",
        "asyncio.run_coroutine_threadsafe(job(), self.loop)",
        "self.loop.call_soon_threadsafe(lambda: self.loop.create_task(job()))",
        "self.group.create_task(job())",
    ],
)
def test_the_way_into_a_loop_that_is_made_for_threads_is_right(call: str) -> None:
    source = f"""\
import asyncio, threading
class Bridge:
    def start(self):
        threading.Thread(target=self.work).start()
    def work(self):
        {call}
"""
    assert findings(source) == []


@pytest.mark.parametrize(
    "own",
    [
        "loop = asyncio.new_event_loop()",
        "asyncio.set_event_loop(self.loop)",
        "asyncio.run(main())",
        "self.loop.run_forever()",
        "if threading.current_thread() is self.thread: pass",
    ],
)
def test_a_thread_with_a_loop_of_its_own_is_not_reported(own: str) -> None:
    source = f"""\
import asyncio, threading
class Bridge:
    def start(self):
        threading.Thread(target=self.work).start()
    def work(self):
        {own}
        self.go()
    def go(self):
        self.loop.create_task(job())
"""
    assert findings(source) == []


def test_it_is_followed_over_the_functions_that_the_thread_calls() -> None:
    source = """\
import asyncio, threading
class Bridge:
    def start(self):
        threading.Thread(target=self.work).start()
    def work(self):
        self.go()
    def go(self):
        self.loop.create_task(job())
"""
    assert lines(source) == [8]


def test_the_run_method_of_a_thread_runs_on_it() -> None:
    source = """\
import asyncio, threading
class Worker(threading.Thread):
    def run(self):
        asyncio.ensure_future(job())
"""
    assert lines(source) == [4]


def test_a_callback_of_paho_runs_on_its_thread() -> None:
    source = """\
import asyncio
import paho.mqtt.client as mqtt
class Bridge:
    def start(self):
        self.client = mqtt.Client()
        self.client.on_message = self.heard
    def heard(self, client, data, message):
        self.loop.create_task(self.handle(message))
"""
    assert lines(source) == [8]
    assert lines(source.replace("paho.mqtt", "gmqtt")) == []


def test_a_handler_of_watchdog_runs_on_its_thread() -> None:
    source = """\
import asyncio
from watchdog.events import FileSystemEventHandler
class Handler(FileSystemEventHandler):
    def on_modified(self, event):
        asyncio.create_task(self.handle(event))
"""
    assert lines(source) == [5]


# Seed 002, as reported: a future made inside an operator of reactivex.
REPORTED = """\
import asyncio
import reactivex as rx
from reactivex import operators as ops
class RxPyLangGraphBridge:
    def operator(self):
        def create_future_task(msg):
            loop = asyncio.get_event_loop()
            task = asyncio.ensure_future(self.execute(msg), loop=loop)
            self._active_tasks.add(task)
            task.add_done_callback(lambda t: self._active_tasks.discard(t))
            return task
        return ops.flat_map(lambda msg: rx.from_future(create_future_task(msg)))
"""


def test_the_reported_bridge_is_found_with_and_without_the_reported_lock() -> None:
    assert lines(REPORTED) == [8]
    fixed = REPORTED.replace(
        "            self._active_tasks.add(task)\n",
        "            with self._lock:\n                self._active_tasks.add(task)\n",
    )
    assert lines(fixed) == [8]


def test_a_scheduler_on_the_loop_keeps_reactivex_on_the_loop() -> None:
    scheduled = "from reactivex.scheduler.eventloop import AsyncIOScheduler\n"
    assert lines(scheduled + REPORTED) == []


def test_a_loop_of_old_in_an_async_method_needs_no_other_thread() -> None:
    source = kind("HF401").wrong.replace("    def on_message", "    async def on_message")
    assert findings(source) == []


def test_paho_driven_by_the_loop_calls_back_on_the_loop() -> None:
    source = """\
import asyncio
import paho.mqtt.client as mqtt
class Bridge:
    def start(self):
        self.client.on_message = self.heard
        self.loop.add_reader(self.socket, self.client.loop_read)
    def heard(self, client, data, message):
        self.loop.create_task(self.handle(message))
"""
    assert findings(source) == []


PAHO = """\
import asyncio
import paho.mqtt.client as mqtt
class Client:
    def __init__(self):
        self._loop = asyncio.get_event_loop()
        self._client = mqtt.Client()
        self._client.on_socket_open = self._on_socket_open
        self._client.on_message = self._on_message
    async def connect(self):
        await self._loop.run_in_executor(None, self._client.connect, "host")
    def _on_socket_open(self, client, userdata, sock):
        self._loop.add_reader(sock.fileno(), client.loop_read)
        self._task = self._loop.create_task(self._misc())
    def _on_message(self, client, userdata, message):
        self._loop.call_soon(print)
"""


def test_what_paho_calls_while_it_connects_runs_where_it_connects() -> None:
    assert lines(PAHO) == [13]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('run_in_executor(None, self._client.connect, "host")', "sock_connect(self._client)"),
        ("create_task(self._misc())", "call_soon_threadsafe(self._misc)"),
        ("on_message = self._on_message", "on_socket_open = self._on_message"),
    ],
)
def test_a_client_that_is_driven_by_the_loop_is_not_reported(old: str, new: str) -> None:
    assert lines(PAHO.replace(old, new)) == []


ASKING = """\
import asyncio, threading

class Worker:
    def start(self):
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self.stop).start()
    def _on_loop(self):
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False
    def stop(self):
        if self._on_loop():
            self._loop.create_task(self._shutdown())
        else:
            asyncio.run_coroutine_threadsafe(self._shutdown(), self._loop)
"""


def test_a_method_that_tells_on_which_thread_it_runs() -> None:
    assert lines(ASKING) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if self._on_loop()", "if self._ready"),
        ("return asyncio.get_running_loop() is self._loop", "return self._loop.is_running()"),
        ("if self._on_loop():", "if len(self._rows):"),
    ],
)
def test_another_test_tells_nothing_about_the_thread(old: str, new: str) -> None:
    assert lines(ASKING.replace(old, new)) == [14]
