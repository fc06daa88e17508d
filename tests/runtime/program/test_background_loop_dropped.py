"""S4.8: an owner that goes away without close still gets a loud, named report."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import threading
import weakref
from pathlib import Path

import pytest

import handfast
from handfast import BackgroundLoop
from tests.runtime.program.programs import run_program
from tests.runtime.wrapped_loop import ForeignLoop


async def value() -> str:
    return "value"


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def test_a_background_loop_that_is_dropped_says_so_and_ends() -> None:
    """S4.8: its name, where it was made, its tasks. They are closed in their order."""
    order: list[str] = []

    class Session:
        async def __aenter__(self) -> Session:
            return self

        async def __aexit__(self, *_: object) -> None:
            order.append("session closed")

    async def uses(session: Session) -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0)
            order.append("user ended")

    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    background: BackgroundLoop | None = BackgroundLoop("forgotten")
    assert background is not None

    async def prepare(scope: handfast.Scope) -> Session:
        return await scope.hold(Session())

    session = background.submit(prepare, background.scope).result()
    answer = background.submit(uses, session)
    background.submit(value).result()
    thread = next(t for t in threading.enumerate() if t.name == "forgotten")
    with pytest.warns(ResourceWarning) as caught:
        background = None
        gc.collect()
    assert background is None
    text = str(caught[0].message)
    assert "background loop 'forgotten'" in text
    assert f"{Path(__file__).name}:{line} in test_a_background_loop" in text
    assert uses.__qualname__ in text
    thread.join()
    assert order == ["user ended", "session closed"]
    assert answer.cancelled()


def test_a_dropped_background_loop_lists_what_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S4.8: nobody waits for its report, so the loop's exception handler gets it."""
    monkeypatch.setattr("handfast._runtime.program.background_loop.CLOSE_TIMEOUT", 0.05)
    reported: list[str] = []
    gate, entered = threading.Event(), threading.Event()

    def blocking() -> None:
        entered.set()
        gate.wait()

    async def stubborn() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(context["message"])
        )
        asyncio.get_running_loop().run_in_executor(None, blocking)
        while True:
            try:
                await forever()
            except asyncio.CancelledError:
                pass

    background: BackgroundLoop | None = BackgroundLoop("forgotten")
    assert background is not None
    background.submit(stubborn)
    entered.wait()
    thread = next(t for t in threading.enumerate() if t.name == "forgotten")
    with pytest.warns(ResourceWarning, match="stubborn"):
        background = None
        gc.collect()
    assert background is None
    thread.join()
    gate.set()
    assert len(reported) == 1
    assert "still running at the end of 'forgotten': task" in reported[0]
    assert "stubborn" in reported[0]
    assert "thread forgotten_0" in reported[0]


@pytest.mark.parametrize("where", ["on its loop", "elsewhere"])
def test_a_scope_that_is_dropped_says_so_and_its_tasks_are_cancelled(where: str) -> None:
    """S4.8: its name, where it was made, its tasks."""
    with ForeignLoop() as foreign:
        kept = [foreign.scope("forgotten")]
        answer = kept[0].submit(forever)
        foreign.do(lambda: kept[0].spawn(forever(), name="spawned").done())

        def drop() -> None:
            kept.clear()
            gc.collect()

        with pytest.warns(ResourceWarning) as caught:
            if where == "elsewhere":
                drop()
            else:
                foreign.do(drop)
        text = str(caught[0].message)
        assert "scope 'forgotten' (created at " in text
        assert "wrapped_loop.py" in text
        assert "forever, spawned" in text
        with pytest.raises(BaseException):  # noqa: B017, PT011
            answer.result()
        assert answer.cancelled()


def test_a_scope_without_tasks_may_be_dropped() -> None:
    """There is nothing to say."""
    handfast.Scope("idle")
    gc.collect()


def test_an_owner_that_never_was_says_nothing() -> None:
    """Its __init__ has refused."""
    with pytest.raises(TypeError):
        BackgroundLoop(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limit"):
        handfast.Scope(limit=0)
    gc.collect()


def test_a_closed_one_may_be_dropped() -> None:
    """There is nothing to say, and nothing that keeps it alive."""
    background = BackgroundLoop("closed")
    background.close()
    gone = weakref.ref(background)
    del background
    gc.collect()
    assert gone() is None


def test_at_the_end_of_the_program_it_is_closed_and_stragglers_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4.8: what is registered for the exit, called by hand."""
    background = BackgroundLoop("open")
    quick = functools.partial(background.close, timeout=0.05)
    monkeypatch.setattr(background, "close", quick)
    gate, entered = threading.Event(), threading.Event()

    def blocking() -> None:
        entered.set()
        gate.wait()

    background.submit(asyncio.to_thread, blocking)
    entered.wait()
    with pytest.warns(
        ResourceWarning, match=r"'open', created at .* left open to the end .*to_thread"
    ):
        background._at_exit()
    assert "still running: thread open" in capsys.readouterr().err
    gate.set()
    monkeypatch.undo()
    background.close()
    assert background.closed


def test_a_background_loop_left_open_to_the_end_of_the_program() -> None:
    """S4.8: it is said, it is closed, and the end is bounded though a thread never ends."""
    ended = run_program(
        """
        entered = threading.Event()

        def blocking():
            say("blocking")
            entered.set()
            threading.Event().wait()

        async def work():
            try:
                await asyncio.to_thread(blocking)
            finally:
                say("cleaned")

        def quick_close(background):
            close = background.close
            background.close = lambda: close(timeout=0.1)

        background = handfast.BackgroundLoop("forgotten")
        quick_close(background)
        background.submit(work)
        entered.wait()
        """,
        "-W",
        "always::ResourceWarning",
    )
    assert (ended.code, sorted(ended.said)) == (0, ["blocking", "cleaned"])
    assert "ResourceWarning: the background loop 'forgotten', created at <string>" in ended.errors
    assert "left open to the end of the program without close" in ended.errors
    assert "still running: thread forgotten" in ended.errors
