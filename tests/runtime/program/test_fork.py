"""A8: a forked child cannot use what runs in its parent, gets an error at once, and exits at once.

The programs are real, in interpreters of their own, and the child is a real fork. It would wait ten
seconds for a loop that does not run in it, or would end the tasks of its parent a second time.
"""

from __future__ import annotations

import os

import pytest

from tests.runtime.program.programs import Ended, run_program

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# Since 3.12 a fork beside other threads warns.
QUIET = ("-W", "ignore::DeprecationWarning")

PARENT_OF_A_BACKGROUND_LOOP = """
async def one():
    return 1

def attempt(what, function):
    try:
        say(what, function())
    except Exception as error:
        text = str(error)
        say(what, type(error).__name__, f"process {{os.getppid()}}" in text, "fork" in text)

background = handfast.BackgroundLoop("back", loop_factory=FACTORIES[{kind!r}])
if {used}:
    background.submit(one).result()
gate = threading.Event()
waiting = background.submit(asyncio.to_thread, gate.wait) if {used} else None
if (child := os.fork()) == 0:
    attempt("submit", lambda: background.submit(one).result())
    attempt("again", lambda: background.submit(one).result())
    if waiting is not None:
        attempt("waiting", waiting.result)
    attempt("scope", background.scope.close_from_thread)
    attempt("close", background.close)
    with handfast.BackgroundLoop("own") as own:
        attempt("own", lambda: own.submit(one).result())
    sys.exit(7)
say("exit", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
gate.set()
if waiting is not None:
    waiting.result()
say("parent", background.submit(one).result(), background.close().clean)
"""


@pytest.mark.parametrize("used", [True, False])
def test_a_background_loop_of_the_parent_is_refused(kind: str, used: bool) -> None:
    ended = run_program(PARENT_OF_A_BACKGROUND_LOOP.format(kind=kind, used=used), *QUIET)
    assert ended == Ended(
        0,
        [
            "submit LoopStopped True True",
            "again LoopStopped True True",
            *(["waiting LoopStopped True True"] if used else []),
            "scope WrongLoop True True",
            "close WrongLoop True True",
            "own 1",
            "exit 7",
            "parent 1 True",
        ],
        "",
    )


FORK_IN_MAIN = """
async def child_task():
    try:
        await forever()
    finally:
        say("clean-up in the parent:", os.getpid() == parent)

async def main():
    async with handfast.Scope("work") as scope:
        task = scope.spawn(child_task())
        scope.submit(asyncio.sleep, 0)
        await asyncio.sleep(0)
        if (child := os.fork()) == 0:
            waste = forever()
            try:
                scope.spawn(waste)
            except handfast.errors.WrongLoop as error:
                say("refused", "fork" in str(error))
            {end}
        # Only a loop that is still woken by other threads gets to know of this.
        status = (await asyncio.to_thread(os.waitpid, child, 0))[1]
        say("exit", os.waitstatus_to_exitcode(status))
        task.cancel()
    say("parent ends")

parent = os.getpid()
handfast.run(main, loop_factory=FACTORIES[{kind!r}])
say("after run, in the parent:", os.getpid() == parent)
"""


@pytest.mark.parametrize(
    ("end", "code", "error"),
    [
        ("sys.exit(7)", 7, ""),
        ("raise ValueError('in the child')", 1, "ValueError: in the child"),
        ("return", 1, "WrongLoop: scope 'work'"),
        ("await task", 1, "WrongLoop: main has forked"),
    ],
)
def test_a_child_that_ends_inside_run_does_not_end_the_tasks_of_its_parent(
    kind: str, end: str, code: int, error: str
) -> None:
    """It neither runs their clean-up nor takes the sockets out of the parent's epoll."""
    ended = run_program(FORK_IN_MAIN.format(kind=kind, end=end), *QUIET)
    assert ended.said == [
        "refused True",
        f"exit {code}",
        "clean-up in the parent: True",
        "parent ends",
        "after run, in the parent: True",
    ]
    assert ended.code == 0
    assert error in ended.errors
    assert "destroyed" not in ended.errors


def test_a_child_that_main_returns_in_gets_its_result() -> None:
    ended = run_program(
        """
        async def main():
            child = os.fork()
            if child:
                await asyncio.to_thread(os.waitpid, child, 0)
            return child == 0
        in_child = handfast.run(main)
        say("child" if in_child else "parent")
        """,
        *QUIET,
    )
    assert ended == Ended(0, ["child", "parent"], "")


def test_a_child_leaves_the_block_of_a_background_loop_with_its_own_error() -> None:
    ended = run_program(
        """
        with handfast.BackgroundLoop("back") as background:
            if (child := os.fork()) == 0:
                sys.exit(7)
            say("exit", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        say("closed", background.closed)
        """,
        *QUIET,
    )
    assert ended == Ended(0, ["exit 7", "closed True"], "")


def test_a_dropped_scope_of_the_parent_is_not_reported_by_the_child() -> None:
    ended = run_program(
        """
        import gc
        async def main():
            scope = handfast.Scope("kept", on_failure="report")
            scope.spawn(forever())
            await asyncio.sleep(0)
            if (child := os.fork()) == 0:
                del scope
                gc.collect()
                os._exit(7)
            say("exit", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            await scope.close()
        asyncio.run(main())
        """,
        "-W",
        "default::ResourceWarning",
        *QUIET,
    )
    assert ended.said == ["exit 7"]
    assert "without close" not in ended.errors
