"""`ExitStatus`: how a process ended, as a value."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a process ended.

    >>> import signal
    >>> str(ExitStatus(code=3, signal=None)), ExitStatus(code=0, signal=None).ok
    ('exit code 3', True)
    >>> str(ExitStatus(code=None, signal=signal.SIGKILL))
    'killed by SIGKILL'
    """

    code: int | None
    """The exit code, or None if a signal ended it."""
    signal: signal.Signals | int | None
    """The signal that ended it; a plain number if Python has no name for it."""

    @property
    def ok(self) -> bool:
        """True for exit code 0."""
        return self.code == 0

    def __str__(self) -> str:
        if self.code is not None:
            return f"exit code {self.code}"
        if self.signal is None:
            return "never started"
        return f"killed by {getattr(self.signal, 'name', f'signal {self.signal}')}"

    @classmethod
    def of(cls, returncode: int | None) -> Self:
        """From a return code as `subprocess` gives it, where -9 means killed by signal 9."""
        if returncode is None or returncode >= 0:
            return cls(returncode, None)
        try:
            return cls(None, signal.Signals(-returncode))
        except ValueError:  # a real-time signal
            return cls(None, -returncode)
