"""`handfast top`: the live screen, driven by textual's pilot."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from handfast._watch.connection.live_reader import LiveReader
from handfast._watch.views import screen
from handfast._watch.views.screen import Lines, Top
from handfast.watch import Growth, Snapshot, WatchError
from tests.watch.views.snapshots import BOT, HOSTILE, loop, place, process, snapshot, task


class Source:
    """A process whose snapshot the test sets."""

    def __init__(self, now: Snapshot = BOT) -> None:
        self.now = now
        self.with_tasks = 0
        self.error = ""

    def summary(self) -> Snapshot:
        if self.error:
            raise WatchError(self.error)
        return self.now

    def snapshot(self, tasks: int = 1000) -> Snapshot:
        self.with_tasks += 1
        return self.summary()


def text(app: Top) -> list[str]:
    """The lines of the body."""
    return app.query_one(Lines).texts


def drawn(app: Top) -> list[str]:
    """The lines that can be seen, as they are drawn."""
    body = app.query_one(Lines)
    return [body.render_line(y).text.rstrip() for y in range(body.size.height)]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread reads; pytest ends a test that waits in vain."""
    while not condition():
        await asyncio.sleep(0.01)


def status(app: Top) -> str:
    return str(app._status.render())


def test_places_are_drawn_within_eighty_columns_from_summaries_alone() -> None:
    async def main() -> None:
        source = Source()
        app = Top(source)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(lambda: len(text(app)) == 7)
            await pilot.pause()
            lines = drawn(app)
            assert lines[1].startswith("HF102 ▲ bot.py:88 poll         812    +3.1    6h12")
            assert max(map(len, lines)) <= 80
            assert "4711  bot.py   loop 0.4 ms" in str(app._head.render())
            assert status(app).startswith("[t]ree [g]rowth [w]hy")
            assert source.with_tasks == 0

    asyncio.run(main())


def test_each_view_has_a_key_and_the_selection_stays() -> None:
    async def main() -> None:
        source = Source()
        app = Top(source)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(lambda: len(text(app)) == 7)
            await pilot.press("down")
            chosen = text(app)[app.query_one(Lines).at]
            assert chosen.startswith("HF131   api.py:20")
            await pilot.press("t")
            await until(lambda: "scope 'inner'" in "".join(text(app)))
            await pilot.press("w")
            await until(lambda: text(app)[:1] == ["1 task created at api.py:20 request"])
            await pilot.press("n")
            assert [line[:5] for line in text(app)[1:]] == ["HF141"]
            await pilot.press("d")
            assert text(app)[-1] == "No place has more or fewer tasks."
            await pilot.press("g", "enter")
            await until(lambda: "sync.py:9 drain" in "".join(text(app)[:1]))
            assert source.with_tasks == 3

    asyncio.run(main())


def test_the_cursor_follows_its_place_when_the_order_changes() -> None:
    async def main() -> None:
        few, many = place(1, 5), place(2, 50)
        source = Source(snapshot(loops=(loop(55),), places=(few, many)))
        app = Top(source)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(lambda: len(text(app)) == 3)
            await pilot.press("down")
            assert "bot.py:11" in text(app)[app.query_one(Lines).at]
            source.now = snapshot(
                loops=(loop(150),), places=(place(1, 100, growth=Growth(2.0, 3)), many)
            )
            await until(lambda: "HF102" in "".join(text(app)))
            await pilot.pause()
            assert text(app)[1].startswith("HF102 ▲ bot.py:11")
            assert app.query_one(Lines).at == 1

    asyncio.run(main())


def test_a_filter_is_typed_kept_and_removed() -> None:
    async def main() -> None:
        app = Top(Source())
        async with app.run_test(size=(80, 24)) as pilot:
            await until(lambda: len(text(app)) == 7)
            await pilot.press("slash", "s", "y", "n", "c", "enter")
            assert [line[:18].split()[-1] for line in text(app)[1:]] == ["sync.py:9", "sync.py:9"]
            await pilot.press("t")
            await until(lambda: text(app) == [])  # no line of the tree has it
            await pilot.press("g", "slash", "x", "enter")
            assert text(app) == ["No place matches the filter."]
            await pilot.press("escape")
            assert len(text(app)) == 7

    asyncio.run(main())


def test_a_snapshot_is_saved_and_compared_with(tmp_path: Path) -> None:
    async def main() -> None:
        source = Source(snapshot(loops=(loop(5),), places=(place(1, 5),)))
        app = Top(source, tmp_path)
        async with app.run_test(size=(100, 24)) as pilot:
            await until(lambda: len(text(app)) == 2)
            await pilot.press("s")
            await until(lambda: "[d] shows what changes from now on" in status(app))
            (file,) = tmp_path.glob("handfast-4711-*.json")
            assert Snapshot.from_json(file.read_text()) == source.now
            await pilot.press("d")
            source.now = snapshot(loops=(loop(9),), places=(place(1, 9),))
            await until(lambda: "grew" in "".join(text(app)))
            assert text(app)[-1].split()[:4] == ["grew", "+4", "5", "9"]

    asyncio.run(main())


def test_a_snapshot_that_cannot_be_saved_is_reported(tmp_path: Path) -> None:
    async def main() -> None:
        app = Top(Source(), tmp_path / "missing")
        async with app.run_test(size=(100, 24)) as pilot:
            await until(lambda: len(text(app)) == 7)
            await pilot.press("s")
            await until(lambda: "cannot be written: No such file" in status(app))

    asyncio.run(main())


def test_a_process_that_goes_away_is_reported_and_its_last_state_stays() -> None:
    async def main() -> None:
        source = Source()
        app = Top(source)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(lambda: len(text(app)) == 7)
            source.error = "process 4711 has ended"
            await until(lambda: "process 4711 has ended" in status(app))
            assert len(text(app)) == 7
            await pilot.press("q")
        assert app.return_code == 0

    asyncio.run(main())


def test_control_c_ends_the_screen_while_the_process_does_not_answer() -> None:
    async def main() -> None:
        never = threading.Event()

        class Stuck(Source):
            def summary(self) -> Snapshot:
                never.wait()
                return BOT

        app = Top(Stuck())
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("ctrl+c")
        assert app.return_code == 0
        assert any(each.name == "handfast-top" for each in threading.enumerate())
        never.set()

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs POSIX signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_screen_so_that_the_terminal_is_restored(name: str) -> None:
    number = signal.Signals[name]

    async def main() -> None:
        app = Top(Source())
        async with app.run_test(size=(80, 24)):
            assert signal.getsignal(number) is not signal.SIG_DFL
            os.kill(os.getpid(), number)
            while app.return_code is None:
                await asyncio.sleep(0)
        assert app.return_code == 128 + number

    asyncio.run(main())


def test_a_process_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "_SILENCE", 0.0)

    async def main() -> None:
        resumed = threading.Event()

        class Stopped(Source):
            def summary(self) -> Snapshot:
                resumed.wait()
                return BOT

        app = Top(Stopped())
        async with app.run_test(size=(80, 24)):
            await until(lambda: "no answer for " in str(app._head.render()))
            monkeypatch.setattr(screen, "_SILENCE", 1e9)
            resumed.set()
            await until(lambda: str(app._head.render()).startswith("4711  bot.py"))
            assert "no answer" not in str(app._head.render())

    asyncio.run(main())


def test_a_long_list_scrolls_with_the_cursor() -> None:
    async def main() -> None:
        crowd = snapshot(
            loops=(loop(4000),), places=tuple(place(n, 5000 - n) for n in range(1, 4001))
        )
        app = Top(Source(crowd))
        async with app.run_test(size=(80, 24)) as pilot:
            await until(lambda: len(text(app)) == 502)
            assert text(app)[-1] == "and 3,500 more places; [/] finds them"
            await pilot.press("end")
            await until(lambda: "bot.py:510 " in "".join(drawn(app)))
            await pilot.press("pageup", "up", "home")
            await until(lambda: "created at" in drawn(app)[0])
            assert "bot.py:11 " in drawn(app)[1]
            await pilot.press("slash", *"4010", "enter")
            assert [line.split()[0] for line in text(app)[1:]] == ["bot.py:4010"]

    asyncio.run(main())


def test_it_is_drawn_anew_in_another_size() -> None:
    async def main() -> None:
        app = Top(Source())
        async with app.run_test(size=(80, 24)) as pilot:
            await until(lambda: len(text(app)) == 7)
            await pilot.resize_terminal(120, 10)
            await until(lambda: "created  oldest" in text(app)[0])

    asyncio.run(main())


def test_hostile_names_are_drawn_as_text() -> None:
    async def main() -> None:
        nasty = snapshot(
            process=process(1, HOSTILE),
            loops=(loop(1),),
            places=(place(1, 1, file=HOSTILE, function=HOSTILE, waiting_at=HOSTILE),),
            tasks=(task(1, name=HOSTILE, coroutine=HOSTILE, place=1),),
        )
        app = Top(Source(nasty))
        async with app.run_test(size=(80, 24)) as pilot:
            for key in "gwtdn":
                await pilot.press(key)
                await until(lambda: text(app) not in ([], ["reading the tasks ..."]))
                await pilot.pause()
                assert all(line.isprintable() for line in [*text(app), *drawn(app)])

    asyncio.run(main())


def test_the_reader_ends_when_it_is_stopped() -> None:
    read: list[Snapshot] = []
    ended: list[str] = []
    reader = LiveReader(Source(), read.append, ended.append)
    reader.stop()
    reader.start()
    reader.join(30)
    assert not reader.is_alive()
    assert read == [BOT]


def test_the_reader_waits_until_a_summary_was_drawn() -> None:
    read: list[Snapshot] = []
    twice = threading.Event()

    def receive(snapshot: Snapshot) -> None:
        read.append(snapshot)
        if len(read) == 2:
            twice.set()

    served = threading.Event()
    reader = LiveReader(Source(), receive, lambda _: None)
    reader.start()
    # Requests are served meanwhile; after each of them the reader looks whether it may read again.
    for _ in range(3):
        served.clear()
        reader.with_tasks(1, lambda _: None, lambda _: served.set())
        served.wait()
    assert len(read) == 1
    reader.taken()
    twice.wait()
    reader.stop()
    reader.join()
