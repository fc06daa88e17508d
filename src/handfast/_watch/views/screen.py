"""`handfast top`: a process on a live screen.

Twice a second it draws a summary, which has places and no tasks. Tasks are read only for the tree, for
why, and to save a snapshot. All text of the process is drawn as it is: nothing in it is markup.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from handfast._watch.agent.agent import MAX_TASKS
from handfast._watch.connection.live_reader import LiveReader, Source
from handfast._watch.diff import compare
from handfast._watch.snapshot import Snapshot
from handfast._watch.views.cells import age, count_of, fit
from handfast._watch.views.diff import diff
from handfast._watch.views.place_rows import GROWS, NEVER, PlaceRow, finding_rows, place_rows
from handfast._watch.views.table import draw, headline, held_up
from handfast._watch.views.tree import tree_lines
from handfast._watch.views.why import why

_TASKS = MAX_TASKS
"""So many tasks are read for the tree and for why."""

_MOST_ROWS = 500
"""So many places are listed, those that grow first. Nobody reads more; the filter searches all."""

_SILENCE = 5.0
"""After so many seconds without a summary the screen says so; it shows what was there before."""

_SAVED_TASKS = 10_000
_KEYS = "[t]ree [g]rowth [w]hy [n]ever [s]napshot [d]iff [/]filter [q]uit"
_PLAIN = Style()
_FINDING = Style(color="red", bold=True)
_TITLE = Style(bold=True)
_CURSOR = Style(reverse=True)


class Lines(ScrollView, can_focus=True):
    """Lines of text with a cursor. Only those that can be seen are drawn."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home", "move(-1_000_000_000)", show=False),
        Binding("end", "move(1_000_000_000)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="body")
        self.texts: list[str] = []
        self.titles = 0
        self.at = 0

    def set(self, texts: Sequence[str], titles: int = 0, at: int = 0) -> None:
        """Show these lines; the first `titles` of them head the others, and `at` is selected."""
        self.texts = list(texts)
        self.titles = min(titles, len(texts))
        self.at = max(self.titles, min(at, len(texts) - 1))
        self.virtual_size = Size(self.size.width, len(self.texts))
        self.refresh()

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self.at = max(self.titles, min(self.at + by, len(self.texts) - 1))
        top = 0 if self.at <= self.titles else self.at
        self.scroll_to_region(Region(0, top, 1, 1), animate=False, force=True)
        self.refresh()

    def action_page(self, pages: int) -> None:
        """Move the cursor by a screen."""
        self.action_move(pages * max(1, self.size.height - 1))

    def render_line(self, y: int) -> Strip:
        """Draw a line, `y` counted from the first that can be seen."""
        number = y + round(self.scroll_offset.y)
        if number >= len(self.texts):
            return Strip.blank(self.size.width)
        text = self.texts[number]
        style = _PLAIN
        if number < self.titles:
            style = _TITLE
        elif text.startswith("HF"):
            style = _FINDING
        if number == self.at and number >= self.titles:
            style += _CURSOR
        return Strip([Segment(text, style)]).adjust_cell_length(self.size.width, style)


class Read(Message):
    """A summary was read."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot


class Made(Message):
    """Lines that needed the tasks are there."""

    def __init__(self, mode: str, lines: list[str]) -> None:
        super().__init__()
        self.mode = mode
        self.lines = lines


class Said(Message):
    """Something to show in the last line. `final`: the process is gone."""

    def __init__(self, text: str, final: bool = False) -> None:
        super().__init__()
        self.text = text
        self.final = final


class Top(App[None]):
    """The screen."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #head, #status { width: 100%; height: auto; text-wrap: nowrap; }
    #head { text-style: bold; }
    #status { text-style: reverse; }
    #body { height: 1fr; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    #filter { height: 1; border: none; padding: 0; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit"),
        # Textual would only say which other key ends the program.
        Binding("ctrl+c", "quit", priority=True),
        Binding("g", "mode('growth')"),
        Binding("n", "mode('never')"),
        Binding("d", "mode('diff')"),
        Binding("t", "mode('tree')"),
        Binding("w,enter", "mode('why')"),
        Binding("s", "save"),
        Binding("slash", "filter"),
        Binding("escape", "end_filter", priority=True),
    ]

    def __init__(self, source: Source, folder: Path | None = None) -> None:
        # The terminal's own colours: they fit it, and they go through any ssh.
        super().__init__(ansi_color=True)
        self._reader = LiveReader(
            source,
            lambda snapshot: self.post_message(Read(snapshot)),
            lambda text: self.post_message(Said(text, final=True)),
        )
        self._folder = folder or Path.cwd()
        self._body = Lines()
        self._head = Static(id="head", markup=False)
        self._status = Static(_KEYS, id="status", markup=False)
        self._filter = Input(placeholder="filter", id="filter")
        self._mode = "growth"
        self._now: Snapshot | None = None
        self._before: Snapshot | None = None
        self._rows: list[PlaceRow] = []
        self._chosen: PlaceRow | None = None
        self._read_at = time.monotonic()
        self._ended = False
        self._text: list[str] = []

    def compose(self) -> ComposeResult:
        """The parts of the screen, from the top."""
        yield self._head
        yield self._body
        yield self._filter
        yield self._status

    def on_mount(self) -> None:
        """Begin to read."""
        self._end_on_signals()
        self._body.focus()
        self._reader.start()
        self.set_interval(1.0, self._draw_head)

    def _end_on_signals(self) -> None:
        """End as with `q`: what ends at once leaves the terminal without a cursor and without echo."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            # Not in another thread, and not on Windows.
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self.exit, None, 128 + number)

    def on_unmount(self) -> None:
        """Let the thread end; the screen does not wait for it."""
        self._reader.stop()

    # --- what was read -------------------------------------------------------------------

    def on_read(self, message: Read) -> None:
        """Draw a summary."""
        self._now = message.snapshot
        self._read_at = time.monotonic()
        self._before = self._before or message.snapshot
        self._draw()
        # After this message and those that wait, so that keys come first.
        self.call_later(self._reader.taken)

    def on_made(self, message: Made) -> None:
        """Draw lines that needed the tasks, unless another view was chosen since."""
        if message.mode == self._mode:
            self._text = message.lines
            self._body.at = 0
            self._draw()

    def on_said(self, message: Said) -> None:
        """Show a message in the last line; after the final one, nothing is read any more."""
        self._ended = self._ended or message.final
        self._status.update(f"{message.text}  [q]uit" if message.final else message.text)

    def on_resize(self) -> None:
        """Draw anew in the new width."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        if self._now is None:
            return
        self._draw_head()
        if self._mode in ("growth", "never"):
            self._draw_rows(self._now)
        else:
            if self._mode == "diff":
                changes = compare(self._before or self._now, self._now)
                self._text = diff(changes, self.size.width).splitlines()
            wanted = self._filter.value.casefold()
            lines = [each for each in self._text if wanted in each.casefold()]
            self._body.set(lines, at=self._body.at)

    def _draw_head(self) -> None:
        lines = [] if self._now is None else [headline(self._now), *held_up(self._now)]
        silent = time.monotonic() - self._read_at
        if silent >= _SILENCE and not self._ended:
            lines.append(f"no answer for {age(silent)}: the process is stopped, or very busy")
        self._head.update("\n".join(fit(each, self.size.width) for each in lines))

    def _draw_rows(self, snapshot: Snapshot) -> None:
        self._chosen = self._selected()
        rows = place_rows(snapshot) if self._mode == "growth" else finding_rows(snapshot, NEVER)
        rows = [each for each in rows if self._filter.value in each]
        self._rows = rows[:_MOST_ROWS]
        if not self._rows:
            none = "No task is known to wait in vain." if self._mode == "never" else "No task."
            self._body.set(["No place matches the filter." if self._filter.value else none])
            return
        # The cursor stays on its place when the order changes.
        at = [_key(each) == _key(self._chosen) for each in self._rows]
        position = at.index(True) if True in at else self._body.at - 1
        lines = draw(self._rows, self.size.width)
        if more := len(rows) - len(self._rows):
            lines.append(f"and {count_of(more, 'more place')}; [/] finds them")
        self._body.set(lines, titles=1, at=position + 1)

    def _selected(self) -> PlaceRow | None:
        """The row under the cursor; in a view without rows, the one that was before."""
        number = self._body.at - 1
        shown = self._body.titles and 0 <= number < len(self._rows)
        return self._rows[number] if shown else self._chosen

    # --- keys ----------------------------------------------------------------------------

    def action_mode(self, mode: str) -> None:
        """Show another view."""
        self._chosen = self._selected()
        self._mode = mode
        self._text = []
        if mode == "tree":
            self._request(mode, tree_lines)
        elif mode == "why":
            place = None if self._chosen is None else self._chosen.place
            self._request(mode, lambda snapshot: why(snapshot, place))
        else:
            self._status.update(_KEYS)
        self._draw()

    def _request(self, mode: str, work: Callable[[Snapshot], list[str]]) -> None:
        self._text = ["reading the tasks ..."]
        self._status.update(_KEYS)
        self._reader.with_tasks(_TASKS, work, lambda lines: self.post_message(Made(mode, lines)))

    def action_save(self) -> None:
        """Write a snapshot to a file; `d` compares with it from now on."""
        self._before = self._now or self._before
        self._reader.with_tasks(
            _SAVED_TASKS, self._saved, lambda text: self.post_message(Said(text))
        )

    def _saved(self, snapshot: Snapshot) -> str:
        name = f"handfast-{snapshot.process.pid}-{time.strftime('%H%M%S')}.json"
        path = self._folder / name
        try:
            path.write_text(snapshot.to_json(), encoding="utf-8")
        except OSError as error:
            return f"{name} cannot be written: {error.strerror}"
        return f"{name}: {count_of(snapshot.alive, 'task')}; [d] shows what changes from now on"

    def action_filter(self) -> None:
        """Type a filter."""
        self._filter.display = True
        # At once: the next key is the first of the filter.
        self.screen.set_focus(self._filter)

    def action_end_filter(self) -> None:
        """Remove the filter."""
        self._filter.value = ""
        self._close_filter()

    def on_input_changed(self, _: Input.Changed) -> None:
        """Filter while it is typed."""
        self._draw()

    def on_input_submitted(self, _: Input.Submitted) -> None:
        """Keep the filter, and go back to the lines."""
        self._close_filter()

    def _close_filter(self) -> None:
        self._filter.display = False
        self.screen.set_focus(self._body)


def _key(row: PlaceRow | None) -> tuple[object, ...]:
    """What stays the same of a row, also when its place begins to grow."""
    if row is None:
        return ()
    return ("" if row.code == GROWS else row.code, row.place, row.created_at)


def show(source: Source) -> int:
    """Run the screen until the user quits; the exit status of the command."""
    app = Top(source)
    app.run()
    return app.return_code or 0
