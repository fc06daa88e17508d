"""How often a signal is sent again to code that it cannot interrupt."""

from __future__ import annotations

from queue import Empty
from types import SimpleNamespace

import pytest

from handfast._runtime.program import signal_resend
from handfast._runtime.program.signal_resend import RETRY, SignalResend


def test_a_handler_that_interrupts_nothing_is_called_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It asks for the signal again at once. Thousands of them would fill the wake-up pipe of the loop,
    and Python would report each one that finds it full."""
    now = 0.0
    sent: list[float] = []

    class Resend(SignalResend):
        def _wait(self, seconds: float) -> None:
            nonlocal now
            try:
                self._events.get_nowait()
            except Empty:
                now += seconds

        def _send(self) -> None:
            sent.append(now)
            self.hurry()
            self._over = len(sent) == 4

    monkeypatch.setattr(signal_resend, "time", SimpleNamespace(monotonic=lambda: now))
    resend = Resend(print, 10.0, lambda: True)
    resend._run()
    assert sent == pytest.approx([0.0, RETRY, 2 * RETRY, 3 * RETRY])
