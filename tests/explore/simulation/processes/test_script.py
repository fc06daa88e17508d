"""What the words of a script mean, as a program sees it through asyncio's own interface."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from typing import Any

import pytest

from handfast._explore.loop.explored_loop import ExploredLoop
from handfast._explore.loop.unsupported import Uncontrolled
from handfast._explore.search.plan import Plan, Settings
from handfast._explore.search.run import run
from handfast._explore.simulation.processes.script import (
    Closes,
    Dies,
    Errs,
    Exits,
    Fails,
    Forks,
    Hears,
    HearsAll,
    Ignores,
    On,
    Says,
    Step,
    Waits,
    child,
)
from tests.explore.simulation.processes.event_log import plainly

exec_ = asyncio.create_subprocess_exec


def now() -> float:
    return asyncio.get_running_loop().time()


def talk(*script: Step, send: bytes | None = None, **pipes: Any) -> tuple[Any, ...]:
    """What `communicate` gives for such a child, its status, and the seconds that it took."""
    result: list[Any] = []
    targets = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, **pipes}

    async def program() -> None:
        child("x", *script)
        began = now()
        process = await exec_("/usr/bin/x", "arg", **targets)
        out, err = await process.communicate(send)
        result.extend((out, err, process.returncode, now() - began))

    plainly(program)
    return tuple(result)


def test_says_errs_waits_and_exits() -> None:
    assert talk(Says(b"out"), Errs(b"err"), Waits(2.5), Exits(7)) == (b"out", b"err", 7, 2.5)


def test_a_script_without_an_end_exits_with_0() -> None:
    assert talk() == (b"", b"", 0, 0.0)


def test_dies_of_a_signal() -> None:
    assert talk(Dies(signal.SIGSEGV))[2] == -11


def test_hears_answers_each_line_until_the_input_ends() -> None:
    heard = Hears(bytes.upper, lines=None)
    assert talk(heard, Says(b"."), send=b"a\nb\nlast")[0] == b"A\nB\nLAST."


def test_hears_takes_as_many_lines_as_it_says() -> None:
    assert talk(Hears(bytes.upper, lines=2), HearsAll(bytes.title), send=b"a\nb\nc\nd")[0] == (
        b"A\nB\nC\nD"
    )


def test_hears_without_an_answer_only_reads() -> None:
    assert talk(Hears(), HearsAll(), Says(b"done"), send=b"a\nb\n")[0] == b"done"


def test_without_a_pipe_the_input_is_empty() -> None:
    assert talk(Hears(bytes.upper), HearsAll(bytes.upper), Says(b"x"), stdin=DEVNULL)[0] == b"x"


def test_stderr_goes_where_it_is_sent() -> None:
    assert talk(Says(b"o"), Errs(b"e"), stderr=STDOUT)[:2] == (b"oe", None)
    assert talk(Says(b"o"), Errs(b"e"), stdout=DEVNULL, stderr=None)[:2] == (None, None)
    # stderr follows stdout to nowhere.
    assert talk(Errs(b"e"), stdout=None, stderr=STDOUT)[:2] == (None, None)


def test_closing_one_of_two_that_share_a_pipe_does_not_end_it() -> None:
    assert talk(Closes("stdout"), Errs(b"e"), Closes("stderr"), stderr=STDOUT)[0] == b"e"


def test_more_than_a_pipe_holds_waits_for_the_reader() -> None:
    data = bytes(range(256)) * 1000
    assert talk(Says(data), HearsAll(len_of), send=data)[0] == data + b"256000"


def len_of(data: bytes) -> bytes:
    return str(len(data)).encode()


def test_a_child_whose_output_is_not_read_blocks() -> None:
    async def program() -> None:
        child("x", Says(bytes(400_000)))
        process = await exec_("x", stdout=PIPE)
        await process.wait()

    verdict = run(program, Plan(), Settings()).verdict
    assert verdict is not None
    assert verdict.code == "HF431"


def test_writing_is_held_back_while_the_child_does_not_read() -> None:
    async def program() -> None:
        child("x", Waits(3), HearsAll())
        process = await exec_("x", stdin=PIPE)
        assert process.stdin is not None
        began = now()
        process.stdin.write(bytes(200_000))
        await process.stdin.drain()
        assert now() - began == 3.0
        process.stdin.close()
        await process.wait()

    plainly(program, stall=0.0)


@pytest.mark.parametrize("script", [(Closes("stdin"), Waits(1)), (Exits(),), (Dies(9),)])
def test_a_pipe_without_a_reader_is_broken(script: tuple[Step, ...]) -> None:
    async def program() -> None:
        child("x", *script)
        process = await exec_("x", stdin=PIPE)
        assert process.stdin is not None
        await asyncio.sleep(0.5)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            process.stdin.write(b"anybody?")
            await process.stdin.drain()
        await process.wait()

    plainly(program, stall=0.0)


def test_a_reader_that_goes_while_bytes_wait_breaks_the_pipe_under_them() -> None:
    async def program() -> None:
        child("x", Waits(1), Closes("stdin"), Waits(1))
        process = await exec_("x", stdin=PIPE)
        assert process.stdin is not None
        process.stdin.write(bytes(200_000))
        with pytest.raises(BrokenPipeError):
            await process.stdin.drain()
        await process.wait()

    plainly(program, stall=0.0)


def test_a_child_that_writes_into_a_closed_pipe_gets_sigpipe() -> None:
    async def program() -> None:
        child("x", Waits(1), Says(b"anybody?"), Waits())
        process = await exec_("x", stdout=PIPE)
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
        assert await process.wait() == -signal.SIGPIPE

    plainly(program)


def test_closing_the_output_sets_a_blocked_writer_free_to_die() -> None:
    async def program() -> None:
        child("x", Says(bytes(400_000), whole=True), Exits())
        process = await exec_("x", stdout=PIPE)
        await asyncio.sleep(1)
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
        assert await process.wait() == -signal.SIGPIPE

    plainly(program)


def test_a_reader_that_pauses_gets_the_rest_later() -> None:
    async def program() -> None:
        child("x", Says(b"a", whole=True), Waits(1), Says(b"b", whole=True))
        process = await exec_("x", stdout=PIPE)
        pipe: Any = process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
        pipe.pause_reading()
        await asyncio.sleep(5)
        pipe.resume_reading()
        assert process.stdout is not None
        assert await process.stdout.read() == b"ab"
        await process.wait()

    plainly(program)


def test_a_grandchild_holds_the_pipes_and_can_say_more() -> None:
    out, err, status, took = talk(Forks(Waits(2), Says(b"g"), Errs(b"h")), Says(b"c"), Exits(1))
    assert (out, err, status, took) == (b"cg", b"h", 1, 2.0)


def ended_by(number: int, *script: Step) -> tuple[bytes, int | None]:
    """Output and status of a child to which `number` is sent when it has said something."""
    result: list[Any] = []

    async def program() -> None:
        child("x", *script)
        process = await exec_("x", stdout=PIPE)
        assert process.stdout is not None
        await process.stdout.readexactly(1)
        process.send_signal(number)
        try:
            async with asyncio.timeout(60):
                rest = await process.stdout.read()
        except TimeoutError:
            process.kill()
            rest = await process.stdout.read() + b" killed"
        result.extend((rest, await process.wait()))

    plainly(program)
    return result[0], result[1]


def test_a_signal_ends_a_child() -> None:
    assert ended_by(signal.SIGTERM, Says(b"a"), Waits()) == (b"", -15)


def test_a_child_can_ignore_a_signal_but_not_kill() -> None:
    script = (Ignores(signal.SIGTERM), Ignores(signal.SIGKILL), Says(b"a"), Waits())
    assert ended_by(signal.SIGTERM, *script) == (b" killed", -9)
    assert ended_by(signal.SIGKILL, *script) == (b"", -9)


def test_a_child_can_act_on_a_signal() -> None:
    leave = On(signal.SIGTERM, Says(b"bye"), Exits(4))
    assert ended_by(signal.SIGTERM, leave, Says(b"a"), Waits()) == (b"bye", 4)
    assert ended_by(signal.SIGTERM, leave, Says(b"a"), Waits(0.5), Exits()) == (b"bye", 4)


def test_what_it_learns_to_ignore_later_counts_from_then_on() -> None:
    script = (Says(b"a"), Waits(1), Ignores(signal.SIGTERM), Waits())
    assert ended_by(signal.SIGTERM, *script) == (b"", -15)


def test_signals_that_mean_nothing_change_nothing() -> None:
    assert ended_by(signal.SIGWINCH, Says(b"a"), Says(b"b"), Exits(2)) == (b"b", 2)


def test_a_quiet_step_comes_after_those_before_it() -> None:
    assert talk(Says(b"a"), Forks(Says(b"b")), Waits(1), Says(b"c"))[0] == b"abc"


# --- which child is meant ----------------------------------------------------------------------


def output(*argv: str) -> Any:
    async def ask() -> bytes:
        process = await exec_(*argv, stdout=PIPE)
        return (await process.communicate())[0]

    return ask()


def test_a_script_is_found_by_name_by_predicate_and_the_last_one_counts() -> None:
    async def program() -> None:
        child("git", Says(b"old"))
        child("git", lambda argv: [Says(" ".join(argv).encode())])
        child(lambda argv: "push" in argv, Says(b"pushed"))
        assert await output("/usr/bin/git", "status") == b"/usr/bin/git status"
        assert await output("git", "push") == b"pushed"

    plainly(program)


def test_a_shell_command_is_split_into_words() -> None:
    async def program() -> None:
        child("ffmpeg", lambda argv: [Says(argv[2].encode())])
        child("echo", Says(b"unfinished"))
        for command, expected in (("ffmpeg -i 'my film'", b"my film"), ("echo '", b"unfinished")):
            process = await asyncio.create_subprocess_shell(command, stdout=PIPE)
            assert (await process.communicate())[0] == expected

    plainly(program)


def test_a_program_that_cannot_be_started_raises_at_the_call() -> None:
    async def program() -> None:
        child("x", Fails(FileNotFoundError(2, "No such file")))
        with pytest.raises(FileNotFoundError, match="No such file"):
            await exec_("x")

    plainly(program)


def test_fails_cannot_come_after_the_start() -> None:
    async def program() -> None:
        child("x", Says(b"a"), Fails(OSError()))
        with pytest.raises(TypeError, match="only step"):
            await exec_("x")

    run(program, Plan(), Settings())


def test_a_program_without_a_script_is_refused_by_name_with_the_advice() -> None:
    async def program() -> None:
        child("ls", Says(b""))
        await exec_("/bin/rm", "-rf")

    with pytest.raises(Uncontrolled, match=r"exec of 'rm'.*handfast.scripted.child\('rm', ...\)"):
        run(program, Plan(), Settings())


def test_a_shell_command_without_a_script_is_refused() -> None:
    async def program() -> None:
        await asyncio.create_subprocess_shell("rm -rf /")

    with pytest.raises(Uncontrolled, match="create_subprocess_shell of 'rm'"):
        run(program, Plan(), Settings())


def test_a_file_as_a_standard_stream_is_refused() -> None:
    async def program() -> None:
        child("x")
        await exec_("x", stdout=1)

    with pytest.raises(Uncontrolled, match="no files"):
        run(program, Plan(), Settings())


@pytest.mark.parametrize("call", ["connect_read_pipe", "connect_write_pipe"])
def test_pipes_of_others_are_refused(call: str) -> None:
    async def program() -> None:
        loop: Any = asyncio.get_running_loop()
        await getattr(loop, call)(asyncio.Protocol, object())

    with pytest.raises(Uncontrolled, match=f"loop.{call}"):
        run(program, Plan(), Settings())


def test_scripts_have_no_meaning_on_another_loop() -> None:
    async def program() -> None:
        child("x", Exits())

    with pytest.raises(RuntimeError, match="under the explorer only"):
        asyncio.run(program())


def test_a_script_is_steps_or_a_function_not_both() -> None:
    loop = ExploredLoop()
    with pytest.raises(TypeError, match="not both"):
        loop.script_child("x", (Exits(), lambda argv: [Exits()]))
    loop.close()


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_time_does_not_go_back(seconds: float) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        Waits(seconds)
