"""S1.1 to S1.7 with real children: how a process ends, by itself and by close()."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tracemalloc

import pytest

from handfast._runtime.errors import OutputDropped, ProcessGone, StragglersLeft
from handfast._runtime.process import child as child_module
from handfast._runtime.process.child import Child, kill_children_of
from handfast._runtime.process.exit_status import ExitStatus
from handfast._runtime.process.group import ProcessGroup
from handfast._runtime.process.output_pipe import Pipe
from handfast._runtime.process.process import Process
from tests.runtime.process.processes import (
    FAMILY,
    descriptors,
    drive,
    line_of,
    on_each_loop,
    outcome,
    running,
    turns,
    until,
)

pytestmark = pytest.mark.usefixtures("small_heap")

MEGABYTE = 1 << 20

# Writes four megabytes after SIGTERM, and only then ends.
LAST_WORDS = """
import os, signal, sys
def on_term(*_):
    for _ in range(64):
        rest = b"x" * 65535 + b"\\n"
        while rest:
            rest = rest[os.write(2, rest):]
    os.write(2, b"END")
    os._exit(7)
signal.signal(signal.SIGTERM, on_term)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests in which EOF never comes."""
    monkeypatch.setattr(child_module, "EOF_TIMEOUT", 0.02)


@on_each_loop
def test_any_bytes_are_drained(kind: str) -> None:
    """S1.1: not UTF-8, NULs, no newline at the end."""
    data = bytes(range(256)) * 300 + b"\n\xff\x00\xfe"

    async def main() -> None:
        echo = "import sys; data = sys.stdin.buffer.read()\n"
        echo += "for out in sys.stdout, sys.stderr: out.buffer.write(data)"
        async with Process(sys.executable, "-c", echo, keep=1 << 20) as process:
            await process.send(data)
            await process.send_eof()
            out = b"".join([line async for line in process.stdout.lines()])
            assert out == data
            await process.wait()
        assert process.stderr.head == process.stderr.tail == data
        assert process.stderr.dropped == 0
        assert b"".join([chunk async for chunk in process.stderr.chunks()]) == data

    drive(kind, main)


@on_each_loop
@pytest.mark.parametrize("read", [True, False])
def test_a_line_of_fifty_megabytes_passes_in_bounded_memory(kind: str, read: bool) -> None:
    """S1.1: a reader gets all of it, and a missing reader blocks nothing."""
    size = 50 * MEGABYTE

    async def main() -> None:
        total = 0
        tracemalloc.start()
        try:
            async with Process("bash", "-c", f"head -c {size} /dev/zero >&2") as process:
                if read:
                    async for line in process.stderr.lines():
                        assert len(line) <= 65536
                        total += len(line)
                assert (await process.wait()).ok
                await until(lambda: process.stderr.eof)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert total == (size if read else 0)
        stderr = process.stderr
        assert len(stderr.head) + len(stderr.tail) == 65536
        assert len(stderr.head) + stderr.dropped + len(stderr.tail) == size
        # uvloop hands over as many as 32 reads in one turn, before a pause can take effect.
        assert peak < 10 * MEGABYTE

    drive(kind, main)


@on_each_loop
@pytest.mark.parametrize("reader", ["none", "stalled", "reading"])
def test_what_a_child_writes_on_term_is_drained_to_the_end(kind: str, reader: str) -> None:
    """S1.2: signal first, then drain; a pipe that nobody reads may not hold the child up."""

    async def main() -> None:
        async with Process(sys.executable, "-c", LAST_WORDS, grace=60) as process:
            assert await line_of(process) == b"ready\n"
            lines = process.stderr.lines()
            task = None
            if reader != "none":
                task = asyncio.ensure_future(anext(lines))
                await turns(3)
            status = await process.close()
        assert status == ExitStatus(7, None)
        assert process.stderr.eof
        assert process.stderr.tail.endswith(b"x\nEND")
        total = len(process.stderr.head) + process.stderr.dropped + len(process.stderr.tail)
        assert total == 4 * MEGABYTE + 3
        if task is not None:
            assert (await task).startswith(b"x")
        if reader == "reading":
            # A2: once closing has begun a slow reader gets a part, an error, and the end.
            with pytest.raises(OutputDropped) as caught:
                async for line in lines:
                    assert line == b"x" * 65535 + b"\n"
            assert caught.value.dropped > 2 * MEGABYTE
            assert [line async for line in lines] == [b"END"]

    drive(kind, main)


@on_each_loop
def test_a_reader_that_stalls_does_not_delay_the_close(kind: str) -> None:
    """S1.2: the pipe is paused for its reader when the close begins."""

    async def main() -> None:
        async with Process("bash", "-c", "trap 'echo bye; exit 5' TERM; yes & wait") as process:
            lines = process.stdout.lines()
            await anext(lines)
            await until(lambda: process.stdout._paused)
            assert await process.close() == ExitStatus(5, None)
            assert process.stdout.eof
            async for _ in lines:
                pass

    drive(kind, main)


@on_each_loop
def test_one_that_ignores_term_and_writes_for_ever_is_killed(kind: str) -> None:
    """S1.2, S1.4."""

    async def main() -> None:
        script = "trap '' TERM; echo ready; yes >&2 & exec yes >&2"
        async with Process("bash", "-c", script, grace=0.05) as process:
            await line_of(process)
        assert await process.wait() == ExitStatus(None, signal.SIGKILL)
        assert process.stderr.eof

    drive(kind, main)


@on_each_loop
def test_a_child_whose_input_is_full_is_closed(kind: str) -> None:
    async def main() -> None:
        async with Process("sleep", "1000") as process:
            sender = asyncio.create_task(process.send(bytes(MEGABYTE)))
            await turns(10)
            assert not sender.done()
        assert await outcome(sender) == "ProcessGone"

    drive(kind, main)


@on_each_loop
def test_a_full_input_that_was_ended_is_thrown_away(kind: str) -> None:
    async def main() -> None:
        async with Process("sleep", "1000") as process:
            await process.send(
                bytes(65536 * 2)
            )  # more than the pipe holds, less than makes it wait
            await process.send_eof()

    drive(kind, main)


@on_each_loop
def test_teardown_touches_only_its_own_process(kind: str) -> None:
    """S1.3: two of the same program; one ends, the other does not notice."""

    async def main() -> None:
        async with Process("cat") as one, Process("cat") as two:
            await one.close()
            await two.send(b"still here\n")
            assert await line_of(two) == b"still here\n"
            with pytest.raises(ProcessGone):
                await one.send(b"x")

    drive(kind, main)


@on_each_loop
def test_exit_and_eof_are_two_events(kind: str) -> None:
    """S1.4: the leader exits, a grandchild of its group holds the pipes; close ends it."""

    async def main() -> None:
        async with Process("bash", "-c", "sleep 1000 & echo up; exit 2") as process:
            assert await process.wait() == ExitStatus(2, None)
            assert not process.stdout.eof
            assert not process.stderr.eof
            await until(lambda: len(running()) == 1)
            assert await process.close() == ExitStatus(2, None)
            assert running() == []
            assert process.stdout.eof

    drive(kind, main)


@on_each_loop
def test_a_grandchild_that_ignores_term_is_killed_after_its_leader_has_gone(kind: str) -> None:
    """S1.4: it holds no pipe, so only the group shows that it is there."""

    async def main() -> None:
        script = "(trap '' TERM; echo up >&3; exec sleep 1000 3>&- >/dev/null 2>&1) 3>&1 & wait"
        async with Process("bash", "-c", script, grace=0.05) as process:
            await line_of(process)
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()
            if kind != "uvloop":  # whose children keep a second copy of each pipe
                await until(lambda: process.stdout.eof and process.stderr.eof)
            await until(lambda: len(running()) == 1)
        assert running() == []

    drive(kind, main)


@on_each_loop
def test_close_is_bounded_when_an_outsider_holds_the_pipe(kind: str, impatient: None) -> None:
    """S1.4: a daemon in a session of its own is out of reach; its pipe is given up."""

    async def main() -> None:
        before = descriptors()
        script = "setsid bash -c 'echo up; exec sleep 1000' & wait"
        async with Process("bash", "-c", script) as process:
            await line_of(process)
            lines = process.stdout.lines()
            reader = asyncio.ensure_future(outcome(anext(lines)))
            await turns(3)
        assert await reader == "StopAsyncIteration"
        assert not process.stdout.eof
        assert "abandoned" in repr(process.stdout)
        assert descriptors() == before
        await until(lambda: len(running()) == 1)
        [daemon] = running()
        os.kill(int(daemon.split()[0]), signal.SIGKILL)
        await until(lambda: running() == [])

    drive(kind, main)


@on_each_loop
def test_what_is_in_the_pipe_is_read_though_an_outsider_holds_it(
    kind: str, impatient: None
) -> None:
    """S1.4: also when the loop was late, and the time for EOF is over before its first turn."""

    async def main() -> None:
        script = (
            "trap 'head -c 50000 /dev/zero >&2; exit 3' TERM; "
            "setsid bash -c 'echo up; exec sleep 1000' & wait"
        )
        async with Process("bash", "-c", script) as process:
            await line_of(process)
            os.kill(process.pid, signal.SIGTERM)
            while len(running()) > 1:
                pass  # the loop does not turn while the child ends
            child_module.EOF_TIMEOUT = 0.0
            assert await process.close() == ExitStatus(3, None)
        assert b"".join([chunk async for chunk in process.stderr.chunks()]) == bytes(50000)
        await until(lambda: len(running()) == 1)
        [daemon] = running()
        os.kill(int(daemon.split()[0]), signal.SIGKILL)
        await until(lambda: running() == [])

    drive(kind, main)


@on_each_loop
def test_no_task_is_pending_after_close(kind: str) -> None:
    """S1.5: the drain is no task at all, and the teardown has ended when close returns."""

    async def main() -> None:
        async with Process(*FAMILY) as process:
            await line_of(process)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            await process.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    drive(kind, main)


@on_each_loop
def test_closers_at_the_same_time_join_one_teardown(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1.6: close against close."""
    begun: list[Child] = []
    teardown = Child.teardown

    async def counted(self: Child, grace: float) -> None:
        begun.append(self)
        await teardown(self, grace)

    async def main() -> None:
        async with Process(*FAMILY) as process:
            await line_of(process)
            begun.clear()
            closers = [asyncio.create_task(process.close()) for _ in range(5)]
            statuses = {await closer for closer in closers} | {await process.close()}
            assert statuses == {ExitStatus(None, signal.SIGTERM)}
            assert len(begun) == 1

    monkeypatch.setattr(Child, "teardown", counted)
    drive(kind, main)


@on_each_loop
def test_a_second_closer_with_less_grace_hurries_the_first(kind: str) -> None:
    """S1.6."""

    async def main() -> None:
        async with Process(
            "bash", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"
        ) as process:
            await line_of(process)
            patient = asyncio.create_task(process.close(grace=100_000))
            await turns(5)
            assert not patient.done()
            assert await process.close(grace=0) == ExitStatus(None, signal.SIGKILL)
            assert await patient == ExitStatus(None, signal.SIGKILL)

    drive(kind, main)


@on_each_loop
def test_restart_and_send_at_the_same_time_leave_one_child(kind: str) -> None:
    """S1.6: senders hold one object for one child, so none of them reaches a wrong one."""

    async def main() -> None:
        current = await Process("cat").start()
        gate = asyncio.Lock()

        async def restart() -> None:
            nonlocal current
            async with gate:
                old = current
                new = Process("cat")
                await old.close()
                current = await new.start()

        async def send() -> str:
            return await outcome(current.send(b"hello\n"))

        work = [asyncio.create_task(f()) for f in (send, restart, send, restart, send) * 2]
        results = [await task for task in work]
        assert set(results) <= {None, "finished", "ProcessGone"}
        await until(lambda: len(running()) == 1)
        assert running()[0].split()[0] == str(current.pid)
        await current.close()

    drive(kind, main)


@on_each_loop
def test_close_while_it_is_being_started_waits_for_the_start(kind: str) -> None:
    """S1.6, S1.8."""

    async def main() -> None:
        for count in range(8):
            process = Process(*FAMILY)
            starter = asyncio.create_task(process.start())
            await turns(count)
            status = await process.close()
            if status == ExitStatus(None, None):  # the start had not begun
                assert await outcome(starter) == "RuntimeError"
            else:
                assert status == ExitStatus(None, signal.SIGTERM)
                assert await outcome(starter) == "finished"
            assert running() == []

    drive(kind, main)


@on_each_loop
def test_the_last_words_and_the_code_of_one_that_exits_by_itself(kind: str) -> None:
    """S1.7: a hundred times, since exit and the last bytes race."""

    async def main() -> None:
        for number in range(100):
            async with Process("bash", "-c", f"echo last words >&2; exit {number}") as process:
                assert (await process.wait()).code == number
            assert process.stderr.head == b"last words\n"
            assert process.stderr.eof

    drive(kind, main)


class GoneAtOnce(asyncio.SubprocessTransport):
    """What uvloop may report of a child that was gone before it was connected: the end first."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0

    def get_pid(self) -> int:
        return os.getpid()

    def get_returncode(self) -> int:
        return 3

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport:
        return asyncio.ReadTransport()

    def close(self) -> None:
        self.closed += 1


def test_the_end_may_be_reported_ahead_of_what_came_before_it() -> None:
    """S1.7: the last words and the code are right in any order of the loop's events."""

    async def main() -> None:
        transport = GoneAtOnce()
        out, err = Pipe("stdout", "pipe", 100), Pipe("stderr", "keep", 100)
        child = Child(asyncio.get_running_loop(), "a test", out, err)
        child.connection_made(transport)
        child.connection_lost(None)
        child.connection_lost(None)
        child.pipe_data_received(2, b"last words")
        child.pipe_connection_lost(2, None)
        child.pipe_connection_lost(1, OSError())
        child.process_exited()
        assert (child.returncode, child.exited.is_set(), transport.closed) == (3, True, 1)
        assert (err.head, err.eof, out.eof) == (b"last words", True, False)

    drive("stock", main)


@on_each_loop
def test_a_process_that_nothing_ends_is_named(
    kind: str, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Close is bounded, and does not call it a success: as for uninterruptible sleep."""

    async def main() -> None:
        async with Process("bash", "-c", "sleep 1000 & echo $!; wait") as process:
            grandchild = int(await line_of(process))
            with monkeypatch.context() as patch:
                patch.setattr(child_module, "KILL_TIMEOUT", 0.02)
                patch.setattr(ProcessGroup, "signal", lambda *_: None)
                closers = [asyncio.create_task(process.close(grace=0)) for _ in range(2)]
                for closer in closers:
                    with pytest.raises(
                        StragglersLeft, match=f"pid {process.pid}.* as another user"
                    ):
                        await closer
                with pytest.raises(StragglersLeft, match="created at"):
                    await process.close()
            os.kill(grandchild, signal.SIGKILL)
            await process.wait()
            await turns(5)
            process._teardown = None
            await process.close()

    drive(kind, main)


@on_each_loop
def test_a_loop_that_goes_down_kills_what_runs_on_it_and_names_it(kind: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with Process(*FAMILY) as process, Process("true") as ended:
            await line_of(process)
            await ended.wait()
            other = asyncio.new_event_loop()
            assert kill_children_of(other) == []
            other.close()
            [name] = kill_children_of(loop)
            assert "sleep 1000" in name
            assert f"pid {process.pid}" in name
            assert await process.wait() == ExitStatus(None, signal.SIGKILL)

    drive(kind, main)


@on_each_loop
def test_a_straggler_is_reported_though_its_closer_was_cancelled(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancel goes on, the error goes to the loop's handler."""
    teardown = Child.teardown

    async def stuck(self: Child, grace: float) -> None:
        await teardown(self, grace)
        raise StragglersLeft("a straggler")

    async def main() -> None:
        reported: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        process = await Process(*FAMILY).start()
        monkeypatch.setattr(Child, "teardown", stuck)
        closer = asyncio.create_task(process.close())
        await turns(1)
        closer.cancel()
        assert await outcome(closer) == "cancelled"
        assert [type(error) for error in reported] == [StragglersLeft]

    drive(kind, main)
    monkeypatch.undo()
