"""What may happen to a bridge between a reactive pipeline and a loop, and what is seen. (Report 3.)

Its loop runs in another thread, as it does in life; what comes while it is cleaned up is explored.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from examples.reactive.explored import SlowGraph
from examples.reactive.graph import Graph, Message
from examples.reactive.pipeline import Runs, from_pool, mapped
from tests.runtime.wrapped_loop import ForeignLoop, Watched

__all__ = [
    "Kind",
    "Seen",
    "blocked_on_its_loop",
    "cleaned_up_from_a_thread",
    "debugged",
    "from_threads",
    "idle",
    "piped",
    "recorded",
    "stopped",
    "stuck",
    "while_it_closes",
]

_LONG = 20.0


class _Bridge(Protocol):
    @property
    def active_tasks(self) -> int: ...
    def create_future_task(self, message: Message) -> Any: ...
    def cleanup_tasks(self) -> Any: ...
    async def cleanup_tasks_async(self) -> object: ...


Kind = Callable[[Graph, asyncio.AbstractEventLoop], _Bridge]


@dataclass
class Seen:
    """What a situation has shown."""

    started: bool = False
    words: list[str] = field(default_factory=list)
    """What asyncio has to say."""
    threads: set[str] = field(default_factory=set)
    """Where the registry was changed."""
    answers: int = 0
    hanging: int = 0
    """Messages that were taken, and never answered."""
    running: int = 0
    """Runs that go on when it has been cleaned up."""
    registered: int = 0
    refused: BaseException | None = None


class _Graph(SlowGraph):
    """Another thread can wait for its first run."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()

    async def ainvoke(self, message: Message, *_: object, **__: object) -> Message:
        self.begun.set()
        return await super().ainvoke(message)


@contextmanager
def _foreign(loop: asyncio.AbstractEventLoop | str = "stock") -> Iterator[ForeignLoop]:
    """A loop in another thread; errors that the reported versions report to it are ignored."""
    foreign = ForeignLoop(loop).__enter__()
    try:
        yield foreign
    finally:
        foreign.close()


# --- from other threads ------------------------------------------------------------------------


def idle(kind: Kind) -> Seen:
    """The loop sleeps without a time-out, and a message comes from another thread."""
    selector, graph = Watched(), _Graph()
    loop = _Woken(selector)
    with _foreign(loop) as foreign:
        bridge = foreign.do(lambda: kind(graph, loop))
        foreign.turn()
        assert selector.asleep.wait(_LONG)
        loop.woken = False
        bridge.create_future_task({"seconds": 0})
        # If it was not woken, it sleeps forever: that is known at once.
        seen = Seen(started=loop.woken and graph.begun.wait(_LONG))
        foreign.wait_for(bridge.cleanup_tasks_async)
    return seen


class _Woken(asyncio.SelectorEventLoop):
    """Records whether it was woken."""

    woken = False

    def _write_to_self(self) -> None:
        self.woken = True
        super()._write_to_self()  # type: ignore[misc]


def debugged(kind: Kind) -> Seen:
    """asyncio's debug mode is on."""
    with _foreign() as foreign, _heard() as words:
        foreign.loop.slow_callback_duration = 60  # this machine may be busy
        foreign.do(lambda: foreign.loop.set_debug(True))
        words.clear()
        bridge = foreign.do(lambda: kind(_Graph(), foreign.loop))
        try:
            bridge.create_future_task({"seconds": 0})
        except RuntimeError as error:
            words.append(str(error))
        foreign.wait_for(bridge.cleanup_tasks_async)
        return Seen(words=list(words))


@contextmanager
def _heard() -> Iterator[list[str]]:
    words: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: words.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("asyncio")
    before, logger.propagate = logger.level, False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        yield words
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = True


def recorded(kind: Kind) -> Seen:
    """Messages come from other threads, and who changes the registry is noted."""
    seen = Seen()

    def note() -> None:
        seen.threads.add(threading.current_thread().name)

    with _foreign() as foreign:
        bridge = foreign.do(lambda: kind(_Graph(), foreign.loop))
        _replace_registry(bridge, note)
        for _ in range(3):
            bridge.create_future_task({"seconds": 60})
        foreign.turn()
        foreign.wait_for(bridge.cleanup_tasks_async)
    return seen


def _replace_registry(bridge: Any, note: Callable[[], None]) -> None:
    class NotingSet(set[Any]):
        def add(self, each: Any) -> None:
            note()
            super().add(each)

        def discard(self, each: Any) -> None:
            note()
            super().discard(each)

    class NotingDict(dict[Any, Any]):
        def __setitem__(self, key: Any, value: Any) -> None:
            note()
            super().__setitem__(key, value)

        def pop(self, *args: Any) -> Any:
            note()
            return super().pop(*args)

    if hasattr(bridge, "_active_tasks"):
        bridge._active_tasks = NotingSet()
    else:
        bridge.bridge._scope._registry.live = NotingDict()


def from_threads(kind: Kind, threads: int, messages: int) -> Seen:
    """Each thread sends as many messages; some fail, some are cancelled, and all at once."""
    with _foreign() as foreign:
        bridge = foreign.do(lambda: kind(Runs().graph(), foreign.loop))
        answers: list[Future[Any]] = []
        begin = threading.Barrier(threads)

        def send(first: int) -> None:
            begin.wait()
            for number in range(messages):
                answers.append(bridge.create_future_task({"n": (first + number) % 4}))
                if number % 5 == first:
                    answers[-1].cancel()

        senders = [threading.Thread(target=send, args=(number,)) for number in range(threads)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        wait_for(answers, _LONG)
        foreign.turn()
        seen = Seen(registered=bridge.active_tasks)
        foreign.wait_for(bridge.cleanup_tasks_async)
        seen.answers = sum(answer.done() for answer in answers)
        seen.hanging = threads * messages - seen.answers
    return seen


def stopped(kind: Kind, how: str) -> Seen:
    """The loop has stopped, or is closed, and a message comes."""
    with _foreign() as foreign:
        bridge = foreign.do(lambda: kind(_Graph(), foreign.loop))
        foreign.stop() if how == "stopped" else foreign.close()
        try:
            bridge.create_future_task({"seconds": 0})
        except RuntimeError as error:
            return Seen(refused=error)
        return Seen(hanging=1)


# --- cleaning up -------------------------------------------------------------------------------


async def while_it_closes(kind: Kind) -> Seen:
    """A message comes while it is cleaned up, and another after that."""
    graph = _Graph()
    bridge = kind(graph, asyncio.get_running_loop())
    bridge.create_future_task({"seconds": 60})
    while not graph.running:
        await asyncio.sleep(0)
    seen = Seen()

    async def send_after(seconds: float) -> None:
        await asyncio.sleep(seconds)
        try:
            bridge.create_future_task({"seconds": 60})
        except RuntimeError as error:
            seen.refused = error

    sending = asyncio.create_task(send_after(0.005))
    await bridge.cleanup_tasks_async()
    seen.running = graph.running
    await sending
    await send_after(0)
    return seen


def cleaned_up_from_a_thread(kind: Kind) -> Seen:
    """Another thread cleans up; its last message is a moment old."""
    graph = _Graph()
    with _foreign() as foreign:
        bridge = foreign.do(lambda: kind(graph, foreign.loop))
        foreign.do(lambda: bridge.create_future_task({"seconds": 60}))
        assert graph.begun.wait(_LONG)
        last = bridge.create_future_task({"seconds": 60})
        bridge.cleanup_tasks()
        return Seen(running=graph.running, hanging=int(not last.done()))


def stuck(kind: Kind, timeout: float) -> Seen:
    """Another thread cleans up within a time-out, and the run does not mind being cancelled."""
    gate = threading.Event()

    class Stuck(_Graph):
        async def ainvoke(self, message: Message, *_: object, **__: object) -> Message:
            self.begun.set()
            while not gate.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    pass
            return message

    graph = Stuck()
    with _foreign() as foreign:
        bridge: Any = foreign.do(lambda: kind(graph, foreign.loop))
        foreign.do(lambda: bridge.create_future_task({"seconds": 60}))
        assert graph.begun.wait(_LONG)
        report = bridge.bridge.cleanup_tasks(grace=0, timeout=timeout)
        gate.set()
        return Seen(words=[each.name for each in report.stragglers])


async def blocked_on_its_loop(kind: Kind) -> Seen:
    """The blocking form is called on the loop's own thread, while there is a run."""
    bridge = kind(_Graph(), asyncio.get_running_loop())
    bridge.create_future_task({"seconds": 60})
    seen = Seen()
    try:
        bridge.cleanup_tasks()
    except RuntimeError as error:
        seen.refused = error
    await bridge.cleanup_tasks_async()
    return seen


async def piped(kind: Kind) -> Seen:
    """Three messages through a pipeline of reactivex; the run of the second fails."""
    loop = asyncio.get_running_loop()
    bridge: Any = kind(Runs().graph(), loop)
    ours = getattr(bridge, "bridge", None)
    over, heard = asyncio.Event(), threading.Event()
    answers: list[object] = []

    def end(*_: object) -> None:
        loop.call_soon_threadsafe(over.set)

    with from_pool(3, 0, 4, when=heard) as messages:
        operator = ours.runs() if ours else mapped(bridge.create_future_task)
        messages.pipe(operator).subscribe(on_next=answers.append, on_error=end, on_completed=end)
        heard.set()
        while not over.is_set():  # as reported, nothing else wakes the loop
            await asyncio.sleep(0.01)
    await bridge.cleanup_tasks_async()
    return Seen(answers=len(answers))
