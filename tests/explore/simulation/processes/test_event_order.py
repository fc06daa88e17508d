"""The order in which a program sees what its child does: all that asyncio and a kernel allow, and
nothing else. Small cases, worked out by hand, against every schedule."""

from __future__ import annotations

import asyncio
import sys
from itertools import permutations
from typing import Any, cast

import pytest

from handfast._explore.search.plan import Plan
from handfast._explore.simulation.processes.process_table import THREADED
from handfast._explore.simulation.processes.script import (
    Closes,
    Dies,
    Errs,
    Exits,
    Forks,
    Hears,
    On,
    Says,
    Waits,
    child,
)
from tests.explore.simulation.processes.event_log import PIPE, STDOUT, callbacks, orders, plainly

# A thread hands the exit over between any two callbacks; a selector sees it at a poll, and sees at
# the same poll all that the child wrote before.
by_a_thread = pytest.mark.skipif(not THREADED, reason="exits come through the selector here")
by_the_selector = pytest.mark.skipif(THREADED, reason="exits come from a thread here")


def test_connection_lost_comes_after_exit_and_all_pipes() -> None:
    assert orders() == {"made exit lost 0"}


def test_exit_and_eof_come_in_either_order() -> None:
    assert orders(Exits(3), stdout=PIPE) == {"made 1:EOF exit lost 3", "made exit 1:EOF lost 3"}


def test_exit_comes_before_between_and_after_output_and_eof() -> None:
    assert orders(Says(b"a"), stdout=PIPE) == {
        "made 1:a 1:EOF exit lost 0",
        "made 1:a exit 1:EOF lost 0",
        "made exit 1:a 1:EOF lost 0",
    }


@by_a_thread
def test_output_comes_whole_or_cut_and_a_thread_reports_the_exit_anywhere() -> None:
    assert orders(Says(b"ab"), stdout=PIPE) == {
        "made 1:ab 1:EOF exit lost 0",
        "made 1:ab exit 1:EOF lost 0",
        "made exit 1:ab 1:EOF lost 0",
        "made 1:a 1:b 1:EOF exit lost 0",
        "made 1:a 1:b exit 1:EOF lost 0",
        "made 1:a exit 1:b 1:EOF lost 0",
        "made exit 1:a 1:b 1:EOF lost 0",
    }


@by_the_selector
def test_what_was_written_before_an_exit_that_the_selector_sees_is_read_with_it() -> None:
    # Since 3.14 the exit is reported inside the reader callback, not in the next turn.
    at_once = {"made 1:a exit 1:b 1:EOF lost 0"} if sys.version_info >= (3, 14) else set()
    assert orders(Says(b"ab"), stdout=PIPE) == at_once | {
        "made 1:ab 1:EOF exit lost 0",
        "made 1:ab exit 1:EOF lost 0",
        "made exit 1:ab 1:EOF lost 0",  # before the pipe was connected
        "made 1:a 1:b 1:EOF exit lost 0",
        "made 1:a 1:b exit 1:EOF lost 0",
    }


@by_the_selector
def test_two_pipes_are_seen_in_either_order() -> None:
    seen = orders(Says(b"o"), Errs(b"e"), Waits(1), stdout=PIPE, stderr=PIPE)
    first = {" ".join(order.split()[1:3]) for order in seen}
    assert first == {"1:o 2:e", "2:e 1:o"}
    assert {tuple(sorted(order.split())) for order in seen} == {
        ("0", "1:EOF", "1:o", "2:EOF", "2:e", "exit", "lost", "made")
    }


@by_the_selector
def test_stderr_into_stdout_is_one_stream_in_order() -> None:
    seen = orders(Says(b"o"), Errs(b"e"), stdout=PIPE, stderr=STDOUT)
    assert {order.replace("exit ", "").replace("1:o 1:e", "1:oe") for order in seen} == {
        "made 1:oe 1:EOF lost 0"
    }


def test_a_pipe_that_is_closed_early_ends_before_the_exit() -> None:
    assert orders(Closes("stdout"), Waits(1), stdout=PIPE) == {"made 1:EOF exit lost 0"}


def test_a_grandchild_keeps_the_pipe_open_after_the_exit() -> None:
    assert orders(Forks(Waits(1)), Exits(2), stdout=PIPE) == {"made exit 1:EOF lost 2"}


def test_what_a_grandchild_says_comes_before_eof() -> None:
    seen = orders(Forks(Waits(1), Says(b"g")), Exits(), stdout=PIPE)
    assert seen == {"made exit 1:g 1:EOF lost 0"}


def test_eof_comes_after_the_bytes_of_every_writer() -> None:
    seen: set[str] = set()

    async def program() -> None:
        child("x", Forks(Waits(0)), Says(b"c"), Exits())
        seen.add(await callbacks("x", stdout=PIPE))

    for seed in range(60):  # two processes have too many schedules for all of them
        plainly(program, Plan(tail="random", seed=seed))
    assert {order.replace("exit ", "") for order in seen} == {"made 1:c 1:EOF lost 0"}


def test_a_child_that_acts_on_a_signal_at_its_last_moment_still_has_its_pipes() -> None:
    def terminate(transport: asyncio.SubprocessTransport) -> None:
        transport.send_signal(15)

    seen = orders(
        On(15, Says(b"b"), Exits(4)), Forks(Waits(1)), Exits(3), act=terminate, stdout=PIPE, stall=0
    )
    assert {order.replace("exit ", "") for order in seen} >= {
        "made 1:EOF lost 3",
        "made 1:b 1:EOF lost 4",
    }
    assert {order.split()[-1] for order in seen if "1:b" not in order} <= {"3", "255"}


def test_a_crash_has_the_signal_as_its_status() -> None:
    assert orders(Dies(11)) == {"made exit lost -11"}


def test_an_answer_comes_after_its_question() -> None:
    def ask(transport: asyncio.SubprocessTransport) -> None:
        cast("Any", transport.get_pipe_transport(0)).write(b"q\n")

    # The kernel closes the pipes of a process that ends in an order of its own.
    ends = {" ".join(each) for each in permutations(("0:EOF", "1:EOF", "exit"))}
    seen = orders(Hears(lambda line: b"!"), Waits(1), act=ask, stdin=PIPE, stdout=PIPE, stall=0)
    assert seen == {f"made 1:! {end} lost 0" for end in ends}


def test_a_kill_leaves_open_how_far_the_child_had_come() -> None:
    def kill(transport: asyncio.SubprocessTransport) -> None:
        transport.kill()

    seen = orders(Says(b"a"), Exits(3), act=kill, stdout=PIPE, stall=0)
    assert {order.replace("exit ", "") for order in seen} >= {
        "made 1:EOF lost -9",
        "made 1:a 1:EOF lost -9",
        "made 1:a 1:EOF lost 3",
    }


def test_the_fault_kill_strikes_at_every_step() -> None:
    seen = orders(Waits(1), Closes("stdout"), Waits(1), Exits(4), stdout=PIPE, faults=("kill",))
    assert {order.replace("exit ", "") for order in seen} == {
        "made 1:EOF lost 4",
        "made 1:EOF lost -9",
    }
