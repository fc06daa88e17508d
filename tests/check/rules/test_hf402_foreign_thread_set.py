"""HF402: which code may set an object of asyncio."""

from __future__ import annotations

import pytest

from handfast._check.finding import Finding
from handfast._check.model.syntax.module import Module
from handfast._check.rules.hf402_foreign_thread_set import RULE
from handfast._check.source import parse
from handfast.catalogue import kind


def findings(source: str) -> list[Finding]:
    return list(RULE.check(Module(parse("x.py", source.encode()), "x")))


def lines(source: str) -> list[int]:
    """The lines of the findings that are shown by default."""
    return [each.place.line for each in findings(source) if not each.pedantic]


def test_the_wrong_example_is_found_and_the_right_one_is_not() -> None:
    assert RULE.code == kind("HF402").code
    assert not RULE.pedantic
    assert lines(kind("HF402").wrong) == [14]
    assert findings(kind("HF402").right) == []
    assert [each.place.line for each in findings(kind("HF402").wrong)[0].related] == [9, 7]


@pytest.mark.parametrize(
    ("made", "call"),
    [
        ("asyncio.Event()", "self.x.set()"),
        ("asyncio.Queue()", "self.x.put_nowait(1)"),
        ("asyncio.PriorityQueue()", "self.x.put_nowait(1)"),
        ("asyncio.get_running_loop().create_future()", "self.x.set_result(1)"),
        ("self.loop.create_future()", "self.x.set_exception(ValueError())"),
        ("asyncio.Lock()", "self.x.release()"),
    ],
)
def test_what_wakes_waiters_is_found(made: str, call: str) -> None:
    source = f"""\
import asyncio, threading
class Work:
    def __init__(self):
        self.x = {made}
    def start(self):
        threading.Thread(target=self.work).start()
    def work(self):
        {call}
"""
    assert lines(source) == [8]


@pytest.mark.parametrize(
    "made", ["threading.Event()", "queue.Queue()", "x", "None", "asyncio.Event() if x else x"]
)
def test_an_object_that_need_not_be_of_asyncio_is_not_reported(made: str) -> None:
    source = f"""\
import asyncio, threading, queue
class Work:
    def __init__(self, x):
        self.x = {made}
    def start(self):
        threading.Thread(target=self.work).start()
    def work(self):
        self.x.set()
"""
    assert findings(source) == []


def test_a_future_of_a_registry_is_known_by_what_is_put_there() -> None:
    source = """\
import asyncio, threading
class Calls:
    def __init__(self):
        self.waiting = {}
        threading.Thread(target=self.read).start()
    async def call(self, key):
        future = asyncio.get_running_loop().create_future()
        self.waiting[key] = future
        return await future
    def read(self):
        for key, answer in self.source:
            self.waiting.pop(key).set_result(answer)
"""
    assert lines(source) == [12]


def test_a_local_event_is_seen_by_the_function_inside() -> None:
    source = """\
import asyncio
async def go(loop):
    done = asyncio.Event()
    def work():
        done.set()
    await loop.run_in_executor(None, work)
"""
    assert lines(source) == [5]


def test_a_coroutine_that_a_thread_passes_on_runs_on_the_loop() -> None:
    source = """\
import asyncio, threading
class Work:
    def __init__(self):
        self.done = asyncio.Event()
        threading.Thread(target=self.work).start()
    def work(self):
        asyncio.run_coroutine_threadsafe(self.end(), self.loop)
    async def end(self):
        self.done.set()
"""
    assert findings(source) == []


@pytest.mark.parametrize(
    "annotation",
    ["asyncio.Queue", "asyncio.Queue[int]", "asyncio.Queue | None", "Optional[asyncio.Queue]"],
)
def test_a_parameter_that_says_what_it_is_is_known(annotation: str) -> None:
    source = f"""\
import asyncio, threading
class Work:
    def __init__(self, queue: {annotation}):
        self.queue = queue
        threading.Thread(target=self.work).start()
    def work(self):
        self.queue.put_nowait(1)
"""
    assert lines(source) == [7]
    assert findings(source.replace("asyncio.Queue", "Queue")) == []


AZURE = """\
import asyncio
from azure.cognitiveservices.speech import SpeechSynthesizer
class Speech:
    def __init__(self):
        self._queue = asyncio.Queue()
        self._synthesizer = SpeechSynthesizer()
        self._synthesizer.synthesizing.connect(self._on_audio)
    def _on_audio(self, event):
        self._queue.put_nowait(event.audio)
"""


def test_a_callback_of_the_azure_speech_sdk_runs_on_its_thread() -> None:
    assert lines(AZURE) == [9]
    assert lines(AZURE.replace("azure.cognitiveservices.speech", "blinker")) == []


BESIDE = (
    "import asyncio\nclass C:\n    def __init__(self, loop):\n        self.loop = loop\n"
    "        self.queue = asyncio.Queue(); self.ended = asyncio.Event()\n"
    "    def on_data(self, data):\n        {data}\n    def on_end(self):\n        {end}\n"
    "    def listen(self, client):\n        client.on_data = self.on_data\n"
    "        client.on_end = self.on_end\n"
)
PASSED_ON = "self.loop.call_soon_threadsafe(self.queue.put_nowait, data)"


@pytest.mark.parametrize(
    ("data", "end", "expected"),
    [
        (PASSED_ON, "self.ended.set()", [9]),  # a callback of the same client
        (f"{PASSED_ON}; self.ended.set()", "pass", [7]),  # in the same function
        ("asyncio.run_coroutine_threadsafe(self.got(data), self.loop)", "self.ended.set()", [9]),
        (PASSED_ON, "self.loop.call_soon_threadsafe(self.ended.set)", []),
        ("self.queue.put_nowait(data)", "self.ended.set()", []),  # nothing shows a thread
        (f"if data: {PASSED_ON}", "self.ended.set()", []),  # for one of two kinds of callers
        ("asyncio.get_running_loop().call_soon_threadsafe(print)", "self.ended.set()", []),
        (f"{PASSED_ON}; print('loop_read')", "self.ended.set()", []),  # driven by the loop
    ],
)
def test_a_function_beside_one_that_passes_to_the_loop(
    data: str, end: str, expected: list[int]
) -> None:
    assert lines(BESIDE.format(data=data, end=end)) == expected


def test_a_callback_of_another_object_is_not_beside_it() -> None:
    source = BESIDE.format(data=PASSED_ON, end="self.ended.set()")
    assert lines(source.replace("client.on_end", "other.on_end")) == []
