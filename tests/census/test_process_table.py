"""The process table is read right, also while it changes."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from typing import Any

import pytest

from handfast._census import process_table


def test_a_name_may_contain_what_surrounds_it() -> None:
    stat = b"7 (a) b (c)) S 1 " + b"0 " * 17 + b"4242 0 0\n"
    assert process_table._parsed(7, stat) == (7, 1, 4242, False, "a) b (c)")


def test_a_process_that_is_being_removed_is_not_found() -> None:
    assert process_table._parsed(7, b"7 (x) X 1 " + b"0 " * 17 + b"4242 0\n") is None


def test_we_are_in_it_ourselves() -> None:
    entry = process_table.find(os.getpid())
    assert entry is not None
    assert (entry.pid, entry.parent, entry.is_zombie) == (os.getpid(), os.getppid(), False)
    assert "python" in process_table.command_line(os.getpid())


def gone() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("has_proc", [True, False])
def test_what_is_gone_is_not_found(has_proc: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_proc:
        pytest.importorskip("psutil")
    monkeypatch.setattr(process_table, "_PROC", has_proc)
    pid = gone()
    assert process_table.find(pid) is None
    assert process_table.command_line(pid) == ""


def test_the_children_of_a_thread_that_ends_meanwhile_are_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = builtins.open
    tries: list[str] = []

    def thread_ends(path: Any, *args: Any, **options: Any) -> Any:
        if str(path).endswith("/children"):
            tries.append(path)
            if len(tries) == 1:
                raise FileNotFoundError(path)
        return theirs(path, *args, **options)

    process = subprocess.Popen(["sleep", "600"])
    try:
        with monkeypatch.context() as patched:
            patched.setattr(builtins, "open", thread_ends)
            assert process.pid in {entry.pid for entry in process_table.children()}
        assert len(tries) > 1
    finally:
        process.kill()
        process.wait()


def test_without_waitid_the_list_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "waitid")
    process = subprocess.Popen(["sleep", "600"])
    try:
        assert process.pid in {entry.pid for entry in process_table.children()}
    finally:
        process.kill()
        process.wait()


def test_it_can_be_read_where_proc_or_psutil_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert process_table.can_be_read()
    monkeypatch.setattr(process_table, "_PROC", False)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "psutil", None)
        process_table._psutil.cache_clear()
        assert not process_table.can_be_read()
    process_table._psutil.cache_clear()
    pytest.importorskip("psutil")
    assert process_table.can_be_read()
