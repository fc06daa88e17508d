"""Snapshots in files: on SIGTERM, on a close that passes its deadline, on a hang."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

import handfast
from handfast import watch
from handfast._runtime.scope import shutdown
from handfast._watch.agent import agent, dump
from handfast.watch import Snapshot, WatchError
from tests.watch.watched_program import line_from, program

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs Unix sockets"),
    pytest.mark.usefixtures("runtime_folder"),
]


def dumps_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("handfast-*.json"))


def read(path: Path) -> Snapshot:
    return Snapshot.from_json(path.read_text())


async def swallow() -> None:
    """Ignores its cancel until it is released by a second one."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


def test_a_close_that_passes_its_deadline_writes_what_did_not_end(tmp_path: Path) -> None:
    async def main() -> None:
        scope = handfast.Scope("slow")
        task = scope.spawn(swallow(), name="swallower")
        await asyncio.sleep(0)
        report = await scope.close(timeout=0.05)
        assert [each.name for each in report.stragglers] == ["swallower"]
        task.cancel()

    with watch.serve(dump_on=["close"], dump_folder=tmp_path):
        asyncio.run(main())
    (path,) = dumps_in(tmp_path)
    assert path.name.endswith("-close.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    taken = read(path)
    (task,) = (task for task in taken.tasks if task.name == "swallower")
    assert task.waits_for == "Event.wait"
    assert [scope.name for scope in taken.scopes] == ["slow"]
    assert shutdown.on_timed_out is shutdown.ignore


def test_a_close_in_time_writes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with handfast.Scope() as scope:
            scope.spawn(asyncio.sleep(0))
        closed = handfast.Scope()
        closed.spawn(asyncio.Event().wait())
        await closed.close()

    with watch.serve(dump_on=["close"], dump_folder=tmp_path):
        asyncio.run(main())
    assert os.listdir(tmp_path) == []


def block_until(event: threading.Event) -> None:
    event.wait()


def test_a_hang_writes_the_frame_that_blocks(tmp_path: Path) -> None:
    written = threading.Event()

    def look() -> None:
        while not dumps_in(tmp_path):
            pass
        written.set()

    async def main() -> None:
        block_until(written)

    looking = threading.Thread(target=look)
    looking.start()
    with watch.serve(dump_on=["hang"], dump_folder=tmp_path, hang_after=0.1):
        asyncio.run(main())
    looking.join()
    (path,) = dumps_in(tmp_path)
    assert path.name.endswith("-hang.json")
    (loop,) = (loop for loop in read(path).loops if loop.blocked_at)
    assert loop.blocked_for >= 0.1
    assert loop.blocked_at[-1].endswith(" in block_until")


# --- SIGTERM -------------------------------------------------------------------------------------

PROGRAM = """
import asyncio, signal, sys
from handfast import watch
async def main():
    {before}
    watch.serve(dump_on=["sigterm"])
    task = asyncio.create_task(asyncio.sleep(1000), name="waits")
    print("ready", flush=True)
    {wait}
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("before", "wait", "code"),
    [
        ("", "await task", -signal.SIGTERM),
        (
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))",
            "await task",
            7,
        ),
        (
            "stop = asyncio.Event(); "
            "asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)",
            "await stop.wait(); sys.exit(8)",
            8,
        ),
        (
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
            "await asyncio.to_thread(input); sys.exit(9)",
            9,
        ),
        ("", "import time\n    while True: time.sleep(0.01)", -signal.SIGTERM),
    ],
    ids=["default", "own handler", "handler of the loop", "ignored", "blocked loop"],
)
def test_sigterm_writes_a_dump_and_then_does_what_it_did(
    tmp_path: Path, before: str, wait: str, code: int
) -> None:
    source = PROGRAM.format(before=before, wait=wait)
    with program(source, tmp_path) as running:
        assert line_from(running) == "ready"
        running.send_signal(signal.SIGTERM)
        if code == 9:
            while not dumps_in(tmp_path):
                pass
            assert running.stdin is not None
            running.stdin.write("\n")
            running.stdin.flush()
        assert running.wait() == code
    (path,) = dumps_in(tmp_path)
    assert path.name == path.name.replace("PID", str(running.pid))
    assert "waits" in {task.name for task in read(path).tasks}


def test_a_handler_that_the_program_sets_later_is_noticed(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with watch.serve(dump_on=["sigterm"], dump_folder=tmp_path):
        assert watch.snapshot().not_checked == ()

        def own(*_: Any) -> None: ...

        signal.signal(signal.SIGTERM, own)
        assert any("no dump on SIGTERM" in each for each in watch.snapshot().not_checked)
    assert signal.getsignal(signal.SIGTERM) is own, "and stays"
    signal.signal(signal.SIGTERM, before)


def test_the_handler_is_restored(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with watch.serve(dump_on=["sigterm"], dump_folder=tmp_path):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_cannot_be_handled_from_another_thread(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(WatchError, match="in the main thread"):
            await asyncio.to_thread(watch.serve, dump_on=["sigterm"], dump_folder=tmp_path)

    asyncio.run(main())


# --- bounds and mistakes -------------------------------------------------------------------------


def dumps() -> dump.Dumps:
    running = agent.current()
    assert running is not None
    assert running._dumps is not None
    return running._dumps


def test_there_are_few_dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watch.serve(dump_on=["hang"], dump_folder=tmp_path):
        for _ in range(3):
            dumps().request("hang", wait=30)
        assert len(dumps_in(tmp_path)) == 1, "not again for ten seconds"
        monkeypatch.setattr(dump, "MAX_FILES", 2)
        for trigger in dump.TRIGGERS:
            dumps().request(trigger, wait=30)
        assert len(dumps_in(tmp_path)) == 2


def test_a_dump_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with watch.serve(dump_on=["hang"], dump_folder=folder):
        folder.rmdir()
        dumps().request("hang", wait=30)
        assert watch.processes() != []
    error = capsys.readouterr().err
    assert error.startswith("handfast watch: no dump was written: ")
    assert error.count("\n") == 1


def test_triggers_can_be_replaced(tmp_path: Path) -> None:
    with watch.serve(dump_on=["close"], dump_folder=tmp_path):
        watch.serve(dump_on=["hang"], dump_folder=tmp_path)
        assert shutdown.on_timed_out is shutdown.ignore
        assert dumps().triggers == {"hang"}


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dump_on has 'sigkill'; there are sigterm, close, hang"):
        watch.serve(dump_on=["sigkill"])  # type: ignore[list-item]
    with pytest.raises(WatchError, match="is no folder: create it"):
        watch.serve(dump_on=["hang"], dump_folder=tmp_path / "missing")
    assert agent.current() is None
