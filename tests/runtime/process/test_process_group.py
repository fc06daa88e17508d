"""A process group is signalled as a whole; other processes are not, and zombies are no survivors."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from handfast._runtime.process import group as process_group
from handfast._runtime.process.group import ProcessGroup


def start(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["bash", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def first_line(child: subprocess.Popen[bytes]) -> bytes:
    assert child.stdout is not None
    return child.stdout.readline()


def test_grandchildren_are_signalled_when_the_leader_has_gone() -> None:
    """S1.4: the leader is reaped, its group is not empty yet."""
    with start("sleep 1000 & echo $!; exit") as leader:
        grandchild = int(first_line(leader))
        leader.wait()
        group = ProcessGroup(leader.pid)
        group.leader_reaped = True
        assert group.survivors() == (grandchild,)
        group.signal(signal.SIGKILL)
        assert leader.stdout is not None
        assert leader.stdout.read() == b""  # EOF: no process has the pipe open
        while group.survivors():
            pass


def test_a_pid_that_went_to_a_stranger_is_spared() -> None:
    """S1.3, #127049: after the leader was reaped, a process with its number is not ours."""
    with start("echo up; read") as stranger:
        first_line(stranger)
        group = ProcessGroup(stranger.pid)
        group.leader_reaped = True
        group.signal(signal.SIGKILL)
        assert group.survivors() == ()
        stranger.communicate(b"\n")
        assert stranger.returncode == 0


@pytest.mark.parametrize("has_proc", [True, False])
def test_a_group_that_is_gone_has_no_survivors_and_takes_no_signal(
    has_proc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "HAS_PROC", has_proc)
    with start("echo up; read") as leader:
        first_line(leader)
        group = ProcessGroup(leader.pid)
        assert group.survivors() == (leader.pid,)
        leader.communicate(b"\n")
    group.signal(signal.SIGKILL)
    assert group.survivors() == ()
    group.leader_reaped = True
    group.signal(signal.SIGKILL)
    assert group.survivors() == ()


def test_a_zombie_is_no_survivor() -> None:
    with start("exit") as leader:
        os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)
        assert ProcessGroup(leader.pid).survivors() == ()


def test_a_program_may_have_any_name(tmp_path: os.PathLike[str]) -> None:
    program = os.path.join(tmp_path, "a) Z 1 (b")
    os.symlink("/bin/cat", program)
    with subprocess.Popen([program], stdin=subprocess.PIPE, start_new_session=True) as leader:
        assert ProcessGroup(leader.pid).survivors() == (leader.pid,)
        leader.communicate(b"")


@pytest.mark.parametrize("has_proc", [True, False])
def test_a_group_that_may_not_be_signalled_is_looked_at(
    has_proc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EPERM: on Linux a set-uid member; on macOS a group of nothing but zombies."""

    def refused(*_: int) -> None:
        raise PermissionError

    with start("echo up; read") as leader:
        first_line(leader)
        group = ProcessGroup(leader.pid)
        with monkeypatch.context() as patch:
            patch.setattr(process_group, "HAS_PROC", has_proc)
            patch.setattr(os, "killpg", refused)
            group.signal(signal.SIGKILL)
            assert group.survivors() == ((leader.pid,) if has_proc else ())
        leader.communicate(b"\n")


def test_a_process_that_goes_while_it_is_looked_at_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    with start("echo up; read") as leader:
        first_line(leader)
        listdir = os.listdir
        monkeypatch.setattr(os, "listdir", lambda path: ["999999999", *listdir(path)])
        assert ProcessGroup(leader.pid).survivors() == (leader.pid,)
        leader.communicate(b"\n")
