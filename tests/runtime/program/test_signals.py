"""SIGINT and SIGTERM in the middle of anything, in real programs.

The end is bounded, nothing is left, and the exit code is what the shell expects: 130 after Ctrl-C
(the interpreter ends itself by SIGINT, which `subprocess` calls -2), 143 after SIGTERM.
"""

from __future__ import annotations

import signal

import pytest

from tests.runtime.program.programs import Program

EXPECTED = {signal.SIGINT: -signal.SIGINT, signal.SIGTERM: 143}
each_signal = pytest.mark.parametrize("number", EXPECTED, ids=lambda number: number.name)


@each_signal
def test_main_is_cancelled_and_its_clean_up_runs(number: signal.Signals, kind: str) -> None:
    """Ends with the code that the shell expects, on each kind of loop."""
    script = f"""
    async def main():
        async with handfast.Scope("work") as scope:
            scope.spawn(child())
            say("ready")
            await forever()

    async def child():
        try:
            await forever()
        finally:
            await asyncio.sleep(0.01)
            say("cleaned")

    handfast.run(main, loop_factory=FACTORIES[{kind!r}])
    """
    with Program(script) as program:
        program.hear("ready")
        program.signal(number)
        ended = program.end()
    assert (ended.code, ended.said) == (EXPECTED[number], ["ready", "cleaned"])
    if number == signal.SIGTERM:
        assert ended.errors == ""
    else:
        assert ended.errors.strip().endswith("KeyboardInterrupt")


def test_a_swallower_of_cancels_is_named_and_does_not_hold_up_the_end() -> None:
    """`asyncio.run` would wait for it for ever."""
    script = """
    async def stubborn():
        while True:
            try:
                await forever()
            except asyncio.CancelledError:
                say("swallowed")

    async def main():
        asyncio.current_task().set_name("main")
        other = asyncio.create_task(stubborn(), name="the other one")
        say("ready")
        await stubborn()

    handfast.run(main, timeout=0.1)
    """
    with Program(script) as program:
        program.hear("ready")
        program.signal(signal.SIGTERM)
        ended = program.end()
    assert ended.code == 143
    assert ended.said.count("swallowed") == 2  # each was cancelled once
    for name in ("'main'", "'the other one'"):
        assert f"still running at the end: task {name}" in ended.errors
    assert ended.errors.count("in forever") == 2  # where it stands
    assert "destroyed" not in ended.errors


def test_a_second_signal_does_not_wait() -> None:
    """Only it can end this program: the deadline lies far away."""
    script = """
    async def main():
        try:
            say("ready")
            await forever()
        finally:
            say("cleaning")
            await forever()

    handfast.run(main, timeout=10_000)
    """
    with Program(script) as program:
        program.hear("ready")
        program.signal(signal.SIGINT)
        program.hear("cleaning")
        program.signal(signal.SIGINT)
        ended = program.end()
    assert ended.code == -signal.SIGINT
    assert "still running at the end: task 'main'" in ended.errors


def test_code_that_blocks_the_loop_is_broken_at_the_deadline() -> None:
    """The loop cannot even hear the signal, and still the end is bounded."""
    script = """
    async def main():
        try:
            say("ready")
            threading.Event().wait()
        finally:
            say("cleaned")

    handfast.run(main, timeout=0.1)
    """
    with Program(script) as program:
        program.hear("ready")
        program.signal(signal.SIGTERM)
        ended = program.end()
    assert (ended.code, ended.said) == (143, ["ready", "cleaned"])


def test_work_in_an_executor_thread_is_named_and_does_not_hold_up_the_end() -> None:
    """S4.5. The stock executor's threads keep the interpreter from exiting."""
    script = """
    def blocking():
        say("ready")
        threading.Event().wait()

    async def main():
        await asyncio.to_thread(blocking)

    handfast.run(main, timeout=0.1)
    """
    with Program(script) as program:
        program.hear("ready")
        program.signal(signal.SIGTERM)
        ended = program.end()
    assert ended.code == 143
    assert "still running at the end: thread handfast.run_0" in ended.errors


def test_a_second_signal_does_not_wait_for_executor_threads() -> None:
    """S4.5, when main has ended and only a thread is left."""
    script = """
    def blocking():
        say("ready")
        threading.Event().wait()

    async def main():
        try:
            await asyncio.to_thread(blocking)
        finally:
            asyncio.get_running_loop().call_later(0, say, "unheard")
            say("leaving")

    import handfast._runtime.program.thread_pool as pool
    first = pool.ThreadPool.shutdown
    pool.ThreadPool.shutdown = lambda self, *a, **k: (first(self, *a, **k), say("waiting"))
    handfast.run(main, timeout=10_000)
    """
    with Program(script) as program:
        program.hear("ready")
        program.signal(signal.SIGTERM)
        program.hear("waiting")
        program.signal(signal.SIGTERM)
        ended = program.end()
    assert ended.code == 143
    assert "still running at the end: thread" in ended.errors


@pytest.mark.parametrize(
    ("number", "how"), [(signal.SIGINT, "with"), (signal.SIGTERM, "held")], ids=["with", "held"]
)
def test_the_group_of_a_child_process_is_gone(number: signal.Signals, how: str) -> None:
    """A child and its own child, both deaf to TERM."""
    script = f"""
    FAMILY = ("bash", "-c", "trap '' TERM INT; (trap '' TERM INT; sleep 1000) & echo up; wait")

    async def hear(process):
        async for line in process.stdout.lines():
            say("ready")
            await forever()

    async def main():
        process = handfast.Process(*FAMILY, grace=0.05)
        if {how!r} == "with":
            async with process:
                await hear(process)
        else:
            async with handfast.Scope() as scope:
                await hear(await scope.hold(process))

    handfast.run(main)
    """
    with Program(script) as program:
        program.hear("ready")
        assert program.descendants()
        program.signal(number)
        ended = program.end()
        assert program.descendants() == []
    assert ended.code == EXPECTED[number]


def test_after_a_second_signal_the_group_of_a_child_process_is_gone_too() -> None:
    """Its teardown is cut in the middle of the grace that it gives."""
    script = """
    DEAF = "trap 'echo deaf' TERM; sleep 1000 & echo up; while true; do wait; done"

    async def hear(process):
        async for line in process.stdout.lines():
            say(line.decode().strip())

    async def main():
        async with handfast.Process("bash", "-c", DEAF, grace=10_000) as process:
            global hearing
            hearing = asyncio.create_task(hear(process))
            await forever()

    handfast.run(main, timeout=10_000)
    """
    with Program(script) as program:
        program.hear("up")
        program.signal(signal.SIGTERM)
        program.hear("deaf")
        program.signal(signal.SIGTERM)
        ended = program.end()
        while program.descendants():
            pass  # the kernel carries out the KILL when it comes to it
    assert ended.code == 143
    assert "killed: process `bash -c" in ended.errors


def test_a_program_with_handlers_of_its_own_keeps_them() -> None:
    """A handler of the program stays in place."""
    script = """
    async def main():
        loop = asyncio.get_running_loop()
        reported = loop.create_future()
        loop.add_signal_handler(signal.SIGINT, lambda: say("its own"))
        signal.signal(signal.SIGTERM, mine)
        say("ready")
        await asyncio.to_thread(sys.stdin.read)
        return 7

    def mine(number, frame):
        say("mine")

    signal.signal(signal.SIGTERM, mine)
    say("returned", handfast.run(main))
    say(signal.getsignal(signal.SIGTERM) is mine)
    """
    with Program(script) as program:
        program.hear("ready")
        program.signal(signal.SIGTERM)
        program.hear("mine")
        program.signal(signal.SIGINT)
        program.hear("its")
        ended = program.end()
    assert (ended.code, ended.errors) == (0, "")
    assert ended.said == ["ready", "mine", "its own", "returned 7", "True"]


def test_a_signal_while_leftovers_have_their_grace_ends_the_grace() -> None:
    """Main has ended by itself, so it cannot answer for the signal: the shell gets to know."""
    script = """
    async def leftover():
        try:
            await forever()
        finally:
            say("cancelled")

    async def main():
        global task
        task = asyncio.create_task(leftover())
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(say, "alone"))

    handfast.run(main, grace=5_000, timeout=10_000)
    say("not reached")
    """
    with Program(script) as program:
        program.hear("alone")
        program.signal(signal.SIGTERM)
        ended = program.end()
    assert (ended.code, ended.said, ended.errors) == (143, ["alone", "cancelled"], "")


def test_main_may_make_something_else_of_its_cancel() -> None:
    """A service that ends in good order has ended well."""
    script = """
    async def main():
        try:
            say("ready")
            await forever()
        except asyncio.CancelledError:
            return "in good order"

    say(handfast.run(main))
    """
    with Program(script) as program:
        program.hear("ready")
        program.signal(signal.SIGTERM)
        ended = program.end()
    assert (ended.code, ended.said, ended.errors) == (0, ["ready", "in good order"], "")
